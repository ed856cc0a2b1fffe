"""Everything about one clause: what the registry knows of it, and the code that tries it."""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from conformance.clause import Clause, Evidence, name_of

_LONGEST: Final = 300
_EVIDENCE: Final = {Evidence.EXAMPLE: "example, as of every clause today; what no example meets is not shown"}


def explained(clause: Clause) -> str:
    """Everything that the registry knows of the clause, and the code that tries it."""
    needs = ", ".join(name_of(need) for need in clause.needs) or "nothing beyond the port"
    lines = [
        f"{clause.id} ({clause.level}), {clause.port.title}",
        "",
        f"  {clause.text}",
        "",
        f"  Why it matters: {clause.why}",
        "",
        "  If it fails, check",
        *(f"    - {hint}" for hint in clause.hints),
        "",
        f"  Needs {needs}. Time limit: {clause.time_limit.total_seconds():g} s.",
        f"  Evidence: {_EVIDENCE.get(clause.evidence, clause.evidence)}.",
    ]
    lines += [f"  Tried after {', '.join(clause.after)}."] if clause.after else []
    lines += ["", f"  Tried by {clause.function.__module__}:", ""]
    lines += [f"    {line}".rstrip() for line in _code(clause).splitlines()]
    return "\n".join(lines)


def _code(clause: Clause) -> str:
    """The function that tries it; of one that a rule made for many clauses, also what it was made with."""
    function = cast("types.FunctionType", clause.function)
    try:
        parts = [_source(function)]
        if function.__closure__:
            parts = [*_made_with(function), *parts, *(_source(helper) for helper in _helpers(function))]
    except OSError:
        return "its source is not installed"
    return "\n\n".join(parts)


def _source(function: Callable[..., Any]) -> str:
    source = textwrap.dedent(inspect.getsource(function))
    # Decorators are the registry's, which has told all they say.
    begin = min(place for word in ("async def", "def ", "class ") if (place := source.find(word)) >= 0)
    return source[begin:].rstrip()


def _made_with(function: types.FunctionType) -> Iterator[str]:
    """A line for each value that the function has from where it was made."""
    lines = [f"# {line}" for name, value in _values(function).items() for line in _told(name, value)]
    if lines:
        yield "\n".join(lines)


def _told(name: str, value: object) -> list[str]:
    text = f"{name} = {_shown(value)}"
    return textwrap.wrap(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…", 96, subsequent_indent="    ")


def _values(function: types.FunctionType) -> Mapping[str, object]:
    """What its free names stand for; of an object whose members it uses, those members."""
    found: dict[str, object] = {}
    names = set(_names(function.__code__))
    for name, value in inspect.getclosurevars(function).nonlocals.items():
        used = [each.name for each in fields(value) if each.name in names] if _is_record(value) else []
        found |= {f"{name}.{member}": getattr(value, member) for member in used} if used else {name: value}
    return found


def _is_record(value: object) -> Any:
    return is_dataclass(value) and not isinstance(value, type)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _helpers(function: types.FunctionType) -> list[types.FunctionType]:
    """The functions that it calls: those it was made with, and those of its module."""
    found = [each for value in _values(function).values() for each in _functions_in(value)]
    found += _called_by(function)
    for helper in found:
        found += [each for each in _called_by(helper) if each not in found and each is not function]
    return list(dict.fromkeys(found))


def _called_by(function: types.FunctionType) -> list[types.FunctionType]:
    called = [function.__globals__.get(name) for name in _names(function.__code__)]
    return [each for each in called if isinstance(each, types.FunctionType) and each.__module__ == function.__module__]


def _functions_in(value: object) -> Iterator[types.FunctionType]:
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _functions_in(each)
    elif _is_record(value):
        for field in fields(cast("Any", value)):
            yield from _functions_in(getattr(value, field.name))


def _shown(value: object) -> str:
    if isinstance(value, type | types.FunctionType):
        return value.__name__
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, cast('list[object]', value)))}]"
    if _is_record(value):
        members = {field.name: getattr(value, field.name) for field in fields(cast("Any", value))}
        return f"{type(value).__name__}({', '.join(f'{name}={_shown(member)}' for name, member in members.items())})"
    return repr(value)
