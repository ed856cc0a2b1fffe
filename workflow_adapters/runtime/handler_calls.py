"""Calling a handler so that the worker stays bounded even if the handler swallows its cancellation."""

from __future__ import annotations

import asyncio
from typing import cast

import anyio

from workflow_adapters.runtime.event_loop import current_asyncio_task
from workflow_adapters.runtime.job_context import JobContext
from workflow_adapters.runtime.observation import Event, Observation, describe
from workflow_adapters.runtime.outcomes import Handler, Outcome


class HandlerCancelledError(Exception):
    """The handler raised the event loop's cancellation although nobody had cancelled it."""


class HandlerCalls:
    """Calls handlers. One that goes on for longer than `grace` seconds after its cancellation is left behind.

    On asyncio a handler runs in a task of its own, because a task group could not be left before it ends. Tasks that
    were left behind are kept here, reported, and never acknowledged. On trio the handler runs in place.
    """

    def __init__(self, handler: Handler, grace: float, observation: Observation) -> None:
        self._handler = handler
        self._grace = grace
        self._observation = observation
        self._left_behind: set[asyncio.Task[Outcome]] = set()

    async def call(self, context: JobContext) -> Outcome:
        if current_asyncio_task() is None:
            return await self._handler(context)
        task = asyncio.create_task(self._run(context), name=f"job-{context.job.job_id}")
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            await self._end(task, context)
            raise
        if task.cancelled() or _is_cancellation(task.exception()):
            raise HandlerCancelledError("the handler ended with a cancellation that nobody had asked for")
        return task.result()

    async def _run(self, context: JobContext) -> Outcome:
        return await self._handler(context)

    async def _end(self, task: asyncio.Task[Outcome], context: JobContext) -> None:
        task.cancel()
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task], timeout=self._grace)
        finally:
            if not task.done():
                self._leave_behind(task, context)
            elif not task.cancelled() and (error := task.exception()) is not None:
                self._observation.note(
                    Event.HANDLER_FAILED_WHILE_CANCELLED,
                    f"the handler of job {context.job.job_id} ended its cancellation with {describe(error)}",
                    job_id=context.job.job_id,
                    error=describe(error),
                )

    def _leave_behind(self, task: asyncio.Task[Outcome], context: JobContext) -> None:
        self._left_behind.add(task)
        task.add_done_callback(self._forget)
        self._observation.note(
            Event.HANDLER_WILL_NOT_END,
            f"the handler of job {context.job.job_id} goes on {self._grace:g} s after its cancellation; "
            "its result will not be used",
            job_id=context.job.job_id,
        )

    def _forget(self, task: asyncio.Task[Outcome]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # seen here, so that asyncio does not report it as never retrieved


def _is_cancellation(error: BaseException | None) -> bool:
    """Whether an error is a group with a cancellation in it, and with nothing that is to end the process."""
    if not isinstance(error, BaseExceptionGroup) or isinstance(error, Exception):
        return False
    group = cast("BaseExceptionGroup[BaseException]", error)
    others = group.split(asyncio.CancelledError)[1]
    return others is None or isinstance(others, Exception)
