"""A transparent stand-in for an adapter that keeps the history of its calls and refuses answers of a wrong shape."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, cast

from conformance.answers import Answers
from conformance.concurrency import is_asked_for
from conformance.outcome import Event
from conformance.wording import Wording

_MOST_EVENTS: Final = 24


@dataclass(slots=True)
class _Call:
    instance: str
    method: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    started: float
    ended: float | None = None
    answer: Any = None
    raised: BaseException | None = None


@dataclass(slots=True)
class History:
    """The calls of one clause, in the order in which they began, over all instances."""

    wording: Wording
    answers: Answers
    refuse: Callable[[str, str, str], None]
    """Called with the contradiction, what was expected and what was observed, when an answer has a wrong shape."""
    began: float = field(default_factory=time.monotonic)
    _calls: list[_Call] = field(default_factory=list[_Call])

    def begin(self, instance: str, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call:
        call = _Call(instance, method, args, kwargs, time.monotonic() - self.began)
        self._calls.append(call)
        return call

    def end(self, call: _Call, answer: Any = None, raised: BaseException | None = None) -> None:
        call.ended = time.monotonic() - self.began
        call.answer = answer
        call.raised = raised

    def raiser_of(self, error: BaseException) -> str | None:
        """The method that raised this very error, if an adapter did."""
        return next((call.method for call in reversed(self._calls) if call.raised is error), None)

    def unanswered(self) -> list[str]:
        """Methods that gave neither an answer nor an error of their own: still running, or cancelled."""
        return [call.method for call in self._calls if call.ended is None or _is_cancellation(call.raised)]

    def events(self) -> tuple[Event, ...]:
        """The last calls, in words."""
        return tuple(self._event(call) for call in self._calls[-_MOST_EVENTS:])

    def _event(self, call: _Call) -> Event:
        show = self.wording.show
        shown = [show(value) for value in call.args] + [f"{name}={show(value)}" for name, value in call.kwargs.items()]
        if call.ended is None:
            answer = "has not come back"
        elif _is_cancellation(call.raised):
            answer = "cancelled"
        else:
            answer = f"raised {show(call.raised)}" if call.raised is not None else show(call.answer)
        text = f"{call.method}({', '.join(shown)})"
        return Event(instance=call.instance, call=text, started=call.started, ended=call.ended, answer=answer)


class Recorded:
    """Stands for an adapter, or for a `tx` of one; everything is passed on."""

    def __init__(self, target: Any, instance: str, history: History) -> None:
        self._target = target
        self._instance = instance
        self._history = history

    def __getattr__(self, name: str) -> Any:
        try:
            attribute: Any = getattr(self._target, name)
        except AttributeError:
            if self._history.answers.has(name):
                self._history.refuse(f"The adapter has no {name}.", f"a method {name}", "there is none")
            raise
        if name == "transaction":
            return lambda: _RecordedTransaction(attribute(), self._instance, self._history)
        if name == "with_transaction":
            return self._with_transaction(attribute)
        if name.startswith("_") or not callable(attribute):
            return attribute
        return self._recorded(name, attribute)

    def _with_transaction(self, method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        async def with_transaction(fn: Callable[[Any], Awaitable[Any]]) -> Any:
            async def recorded(tx: Any) -> Any:
                return await fn(Recorded(tx, f"{self._instance}.tx", self._history))

            call = self._history.begin(self._instance, "with_transaction", (), {})
            return await self._awaited(call, method(recorded))

        return with_transaction

    def _recorded(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if self._history.answers.is_async(name):

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                call = self._history.begin(self._instance, name, args, kwargs)
                return await self._awaited(call, self._called(call, method))

            return call_async

        def call_sync(*args: Any, **kwargs: Any) -> Any:
            call = self._history.begin(self._instance, name, args, kwargs)
            answer = self._called(call, method)
            self._answered(call, answer)
            return answer

        return call_sync

    def _called(self, call: _Call, method: Callable[..., Any]) -> Any:
        try:
            return method(*call.args, **call.kwargs)
        except BaseException as error:
            self._history.end(call, raised=error)
            raise

    async def _awaited(self, call: _Call, answer: Any) -> Any:
        if not inspect.isawaitable(answer):
            self._history.end(call, answer)
            shown = self._history.wording.show(answer)
            self._history.refuse(
                f"{call.method} must be async; it gave {shown} without being awaited.",
                f"{call.method} is a coroutine function",
                f"it returned {shown}",
            )
        try:
            value = await cast("Awaitable[Any]", answer)
        except BaseException as error:
            self._history.end(call, raised=error)
            self._refuse_control_flow(call, error)
            raise
        self._answered(call, value)
        return value

    def _refuse_control_flow(self, call: _Call, error: BaseException) -> None:
        """Turn what would end a task group, or the loop, without a trace into a verdict."""
        uncalled = isinstance(error, asyncio.CancelledError) and not is_asked_for(error)
        if uncalled or isinstance(error, KeyboardInterrupt | SystemExit):
            name = type(error).__name__
            said = f"{name}, and nobody had cancelled it" if uncalled else name
            self._history.refuse(f"{call.method} raised {said}.", f"{call.method} gives an answer", name)

    def _answered(self, call: _Call, answer: Any) -> None:
        self._history.end(call, answer)
        wrong = self._history.answers.complaint(call.method, answer)
        if wrong is not None:
            shown = self._history.wording.show(answer)
            self._history.refuse(
                f"{call.method} answers {wrong}; it returned {shown}.", f"{call.method} -> {wrong}", shown
            )


def _is_cancellation(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        # Where several tasks are cancelled at once, trio's nursery raises them all.
        return all(_is_cancellation(each) for each in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    # By name: trio may not be installed.
    return error is not None and type(error).__name__ in {"CancelledError", "Cancelled"}


class _RecordedTransaction:
    def __init__(self, inner: AbstractAsyncContextManager[Any], instance: str, history: History) -> None:
        self._inner = inner
        self._instance = f"{instance}.tx"
        self._history = history

    async def __aenter__(self) -> Recorded:
        call = self._history.begin(self._instance, "BEGIN", (), {})
        try:
            tx = await self._inner.__aenter__()
        except BaseException as error:
            self._history.end(call, raised=error)
            raise
        self._history.end(call)
        return Recorded(tx, self._instance, self._history)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        call = self._history.begin(self._instance, "COMMIT" if error is None else "ROLLBACK", (), {})
        try:
            swallowed = await self._inner.__aexit__(kind, error, trace)
        except BaseException as raised:
            self._history.end(call, raised=None if raised is error else raised)
            raise
        self._history.end(call)
        return swallowed
