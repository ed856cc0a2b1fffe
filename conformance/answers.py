"""The shapes of answers, read off the ports' own annotations."""

from __future__ import annotations

import inspect
import types
from functools import cache
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from conformance.clause import Port
from workflow_adapters.ports import ai_call_logger, job_queue, outbox, step_ledger, workflow_persistence


class Answers:
    """What the methods of one port return."""

    def __init__(self, *protocols: type) -> None:
        self._hints: dict[str, Any] = {}
        self._async: set[str] = set()
        for protocol in protocols:
            for name, method in inspect.getmembers(protocol, inspect.isfunction):
                if name.startswith("_"):
                    continue
                self._hints[name] = get_type_hints(method).get("return", Any)
                if inspect.iscoroutinefunction(method):
                    self._async.add(name)

    def has(self, method: str) -> bool:
        return method in self._hints

    def is_async(self, method: str) -> bool:
        return method in self._async

    def complaint(self, method: str, answer: object) -> str | None:
        """What the port says the method answers, where `answer` is not of that shape; else None."""
        hint = self._hints.get(method, Any)
        return None if _fits(answer, hint) else _words(hint)


def _fits(answer: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is None:
        return answer is None
    if origin in _UNIONS:
        return any(_fits(answer, part) for part in parts)
    if origin is list:
        return isinstance(answer, list) and all(_fits(item, parts[0]) for item in cast("list[object]", answer))
    if isinstance(hint, type):
        return isinstance(answer, hint) and not (hint is int and isinstance(answer, bool))
    return True


def _words(hint: Any) -> str:
    if hint is None or hint is types.NoneType:
        return "None"
    if get_origin(hint) in _UNIONS:
        return " or ".join(_words(part) for part in get_args(hint))
    if get_origin(hint) is list:
        return f"a list of {_words(get_args(hint)[0])}"
    return str(getattr(hint, "__name__", hint))


_UNIONS: Final = (Union, types.UnionType)

CAPABILITIES: Final[dict[type, tuple[type, ...]]] = {
    workflow_persistence.WorkflowPersistence: (outbox.SupportsOutboxLease,),
    job_queue.JobQueue: (
        job_queue.SupportsDefer,
        job_queue.SupportsAbsoluteLease,
        job_queue.SupportsWorkerAdoption,
        job_queue.SupportsFairness,
        job_queue.SupportsWaiting,
        job_queue.SupportsDequeueMany,
        job_queue.SupportsCompleteMany,
        job_queue.SupportsHeartbeat,
    ),
    step_ledger.StepLedger: (step_ledger.SupportsClearExcept,),
    ai_call_logger.AICallLogger: (ai_call_logger.SupportsListCalls, ai_call_logger.SupportsFlush),
}
"""Each port's Protocol and its optional capabilities."""


def protocol_of(port: Port) -> type:
    """The port's Protocol."""
    return next(protocol for protocol in CAPABILITIES if protocol.__name__ == port.title)


def capabilities_of(port: Port) -> tuple[type, ...]:
    return CAPABILITIES[protocol_of(port)]


@cache
def answers_of(port: Port) -> Answers:
    """The shapes of the port's answers and of its capabilities'."""
    return Answers(protocol_of(port), *capabilities_of(port))


def members_missing(adapter: object, protocol: type) -> list[str]:
    """What the Protocol has and the adapter has not, by name; unlike isinstance, also seen through ``__getattr__``."""
    names = [name for name in dir(protocol) if not name.startswith("_")]
    return [name for name in names if not hasattr(adapter, name)]
