"""Reports for tests of what is made from them."""

from __future__ import annotations

from functools import cache
from typing import Any

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Port
from conformance.outcome import Outcome, Result
from conformance.report import ClauseText, Report, Subject
from conformance.runner import run_sync
from tests.conformance.misbehaving import Forgetful, Unstamped, factory_of
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import pocket
from workflow_adapters.ports.step_ledger import SupportsClearExcept


def judged(factory: Any, name: str, **options: Any) -> Report:
    spec = Spec(port=Port.STEP_LEDGER, factory=factory, name=name, **options)
    return run_sync(spec, Choice(seed=7), registry=REGISTRY)


def made(*outcomes: Outcome, areas: tuple[str, ...] = (), **changes: Any) -> Report:
    """A report with a clause for each outcome."""
    names = [*areas, *("RULE" for _ in outcomes)]
    ids = [f"JQ-{names[place]}-{place:02}" for place in range(len(outcomes))]
    clauses = tuple(
        ClauseText(id=id, level="MUST", text="A <rule>.", why="A reason.", hints=("A hint.",)) for id in ids
    )
    results = tuple(
        Result(clause_id=id, outcome=outcome, reason=None if outcome is Outcome.PASS else "so it is")
        for id, outcome in zip(ids, outcomes, strict=True)
    )
    given: dict[str, Any] = {
        "subject": Subject(name="queue", port="JobQueue", location="m:f"),
        "clauses": clauses,
        "results": results,
        "started_at": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "seed": 7,
        "loop": "asyncio",
        "python": "3.11.7",
        "platform": "Linux",
        "version": "0",
    }
    return Report(**{**given, **changes})


@cache
def samples() -> list[Report]:
    """Four ledgers: good, bad, with honest gaps, and one that a SHOULD warns of."""
    return [
        judged(pocket, "good", capabilities=[SupportsClearExcept]),
        judged(factory_of(Forgetful), "bad"),
        judged(factory_of(Forgetful), "honest", gaps={"SL-CLAIM-01": "no unique key", "SL-CLAIM-02": "the same"}),
        judged(factory_of(Unstamped), "warned"),
    ]
