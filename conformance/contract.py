"""docs/contract.md: every clause, port by port and topic by topic, written from the registry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from conformance.clause import Clause, Level, Port, name_of
from conformance.registry import Registry
from conformance.report import topic_of

_HEAD: Final = """\
# The contract, clause by clause

Every rule of the ports that can be tried on an adapter, with the id under which the harness, its reports and its
failures speak of it. Ids are permanent: none is ever changed or used again. The signatures and the rules in full are in
the docstrings of `workflow_adapters.ports`.

**MUST** binds every adapter. **SHOULD** may be left out for a good reason. A clause that needs a capability or a
parameter applies to the adapters that declare it.

This page is written by `make contract`; change the clauses, not the page.
"""


def contract(registry: Registry) -> str:
    """The whole page."""
    parts = [_HEAD, _contents(registry)]
    for port in Port:
        clauses = registry.clauses(port)
        if clauses:
            parts += [f"## {port.title}\n", *_topics(clauses)]
    return "\n".join(parts).rstrip() + "\n"


def _contents(registry: Registry) -> str:
    lines = ["| Port | MUST | SHOULD | MAY |", "| --- | --- | --- | --- |"]
    for port in Port:
        levels = [clause.level for clause in registry.clauses(port)]
        if levels:
            counts = " | ".join(str(levels.count(level)) for level in Level)
            lines.append(f"| [{port.title}](#{port.title.lower()}) | {counts} |")
    return "\n".join(lines) + "\n"


def _topics(clauses: Iterable[Clause]) -> Iterable[str]:
    topics: dict[str, list[Clause]] = {}
    for clause in clauses:
        topics.setdefault(topic_of(clause), []).append(clause)
    for topic, members in topics.items():
        yield f"### {topic}\n"
        yield from (_entry(clause) for clause in sorted(members, key=lambda clause: clause.id))


def _entry(clause: Clause) -> str:
    needs = "".join(f", needs `{name_of(need)}`" for need in clause.needs)
    hints = "".join(f"\n- {hint}" for hint in clause.hints)
    return f"**{clause.id}** ({clause.level}{needs}): {clause.text}\n\n*Why:* {clause.why}\n{hints}\n"
