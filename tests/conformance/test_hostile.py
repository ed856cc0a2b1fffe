"""Whole runs against hostile queues, with the real clauses: none ends green, none stops the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from conformance.answers import answers_of, capabilities_of
from conformance.backend import Env, Fixture, Spec
from conformance.choice import Choice
from conformance.clause import Parameters, Port
from conformance.outcome import Outcome
from conformance.registry import load
from conformance.report import Report
from conformance.runner import run_sync
from tests.conformance.memory_backend import open_on_memory

KEPT: Final[list[asyncio.Task[None]]] = []
Wrap = Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]


class Hostile:
    """The queue in memory, with every asynchronous method of the port wrapped."""

    def __init__(self, queue: Any, wrap: Wrap) -> None:
        self._queue = queue
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._queue, name)
        return self._wrap(attribute) if answers_of(Port.JOB_QUEUE).is_async(name) else attribute


def hangs(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def hang(*args: Any, **kwargs: Any) -> Any:
        await asyncio.Event().wait()
        return await method(*args, **kwargs)

    return hang


def cancels(_: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def cancel(*_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError

    return cancel


def leaks(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def leak(*args: Any, **kwargs: Any) -> Any:
        KEPT.append(asyncio.create_task(asyncio.sleep(3600)))
        return await method(*args, **kwargs)

    return leak


def does_nothing(_: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def nothing(*_: Any, **__: Any) -> None:
        await asyncio.sleep(0)

    return nothing


def behaves(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    return method


def judged(wrap: Wrap, *, declared: bool = True) -> Report:
    @asynccontextmanager
    async def make(env: Env) -> AsyncGenerator[Fixture[Any]]:
        async with open_on_memory(env) as bundle:
            yield replace(bundle, adapter=Hostile(bundle.adapter.job_queue, wrap))

    spec = Spec(
        port=Port.JOB_QUEUE,
        factory=make,
        name=wrap.__name__,
        capabilities=capabilities_of(Port.JOB_QUEUE) if declared else (),
        parameters=Parameters(writers="one"),
    )
    return run_sync(spec, Choice(seed=7, time_scale=0.02 if wrap is hangs else 1.0))


@pytest.mark.parametrize("wrap", [hangs, cancels, leaks, does_nothing])
def test_a_hostile_queue_is_red_and_every_clause_has_its_word(wrap: Wrap) -> None:
    report = judged(wrap)
    assert report.exit_code == 1
    assert len(report.results) == len(load().clauses(Port.JOB_QUEUE))
    # What it is declared to have, it has; and to say nothing is right here and there.
    assert report.counts[Outcome.PASS] < len(report.results) / 20
    assert not report.counts[Outcome.HARNESS_ERROR]


def test_a_queue_that_declares_nothing_is_incomplete() -> None:
    report = judged(behaves, declared=False)
    assert report.exit_code == 3
    assert report.incomplete_because() == "methods of capabilities that are not declared were not tried"
    assert report.counts[Outcome.NOT_APPLICABLE] > 0
