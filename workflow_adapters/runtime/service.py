"""Worker, reaper, relay and purger in one block, for a service of any kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Unpack

import anyio

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.options import PurgerOptions, ReaperOptions, RelayOptions, ServiceOptions
from workflow_adapters.runtime.outbox_relay import OutboxRelay, Sink
from workflow_adapters.runtime.outcomes import Handler
from workflow_adapters.runtime.purger import Purger, Retention
from workflow_adapters.runtime.reaper import Reaper
from workflow_adapters.runtime.settings import WorkerOptions
from workflow_adapters.runtime.task_groups import open_task_group
from workflow_adapters.runtime.worker import Worker

if TYPE_CHECKING:
    # Type checkers know this one, installed or not. Its default is what typing.TypeVar lacks before Python 3.13.
    from typing_extensions import TypeVar

    A_co = TypeVar("A_co", bound=Adapters, covariant=True, default=Adapters)
else:
    from typing import TypeVar

    A_co = TypeVar("A_co", bound=Adapters, covariant=True)

A = TypeVar("A", bound=Adapters)

OpenAdapters = Callable[[], AbstractAsyncContextManager[Adapters]]
"""Opens the bundle anew each time it is called: ``lambda: open_adapters(URL)``."""


class WorkflowService(Generic[A_co]):
    """The open bundle and the loops that run on it; what an application keeps in its state.

    ``WorkflowService[BuiltInAdapters]`` is one whose bundle was opened by `open_adapters`.
    """

    def __init__(
        self, adapters: A_co, worker: Worker, reaper: Reaper, relay: OutboxRelay | None, purger: Purger | None
    ) -> None:
        self._adapters = adapters
        self.worker = worker
        self.reaper = reaper
        self.relay = relay
        self.purger = purger

    @property
    def adapters(self) -> A_co:
        return self._adapters

    @property
    def loops(self) -> list[Loop]:
        return [loop for loop in (self.reaper, self.relay, self.purger) if loop is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Options of `run_workflow_service`.

    - `sink` publishes outbox events; without it nothing is published.
    - `retention` says what is purged; without it nothing is.
    - `migrate` brings the schema up to date first.
    - `worker`, `reaper`, `relay`, `purger` are the options of those classes. The reaper's `stale_after` is the worker's
      lease unless it is given; one that is shorter is a ConfigurationError.
    """

    sink: Sink | None = None
    retention: Retention | None = None
    migrate: bool = False
    worker: WorkerOptions = field(default_factory=WorkerOptions)
    reaper: ReaperOptions = field(default_factory=ReaperOptions)
    relay: RelayOptions = field(default_factory=RelayOptions)
    purger: PurgerOptions = field(default_factory=PurgerOptions)


@asynccontextmanager
async def run_workflow_service(
    open_bundle: Callable[[], AbstractAsyncContextManager[A]], handler: Handler, **settings: Unpack[ServiceOptions]
) -> AsyncGenerator[WorkflowService[A]]:
    """Open the bundle, run the loops while the block runs, and end in order: drain the worker, stop the loops, close.

    The keyword arguments are those of `ServiceSettings`.
    """
    chosen = ServiceSettings(**settings)
    if isinstance(open_bundle, AbstractAsyncContextManager):
        raise ConfigurationError("open_bundle must be a function that opens a bundle: lambda: open_adapters(url)")
    async with open_bundle() as adapters:
        if chosen.migrate:
            await adapters.migrate()
        service = _build(adapters, handler, chosen)
        failure: BaseException | None = None
        async with open_task_group() as tasks:
            for loop in service.loops:
                await tasks.start(loop.run)
            worker_ended = anyio.Event()
            tasks.start_soon(_work, service.worker, worker_ended)
            try:
                yield service
            except BaseException as error:  # noqa: BLE001  # raised again below, where no task group wraps it
                failure = error
            finally:
                await _stop(service, worker_ended)
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _work(worker: Worker, ended: anyio.Event) -> None:
    try:
        await worker.run()
    finally:
        ended.set()


async def _stop(service: WorkflowService, worker_ended: anyio.Event) -> None:
    service.worker.stop()
    with anyio.CancelScope(shield=True):
        await worker_ended.wait()  # bounded by the worker's drain and grace
    for loop in service.loops:
        loop.stop()


def _build(adapters: A, handler: Handler, chosen: ServiceSettings) -> WorkflowService[A]:
    worker = Worker(adapters.job_queue, handler, adapters=adapters, **chosen.worker)
    stale_after = chosen.reaper.get("stale_after", worker.lease)
    if stale_after < worker.lease:
        raise ConfigurationError("the reaper's stale_after is shorter than the worker's lease: it would take live jobs")
    relay, purger = None, None
    if chosen.sink is not None:
        relay = OutboxRelay(adapters.persistence, chosen.sink, **chosen.relay)
    if chosen.retention is not None:
        purger = Purger(adapters, chosen.retention, **chosen.purger)
    reaping: ReaperOptions = {**chosen.reaper, "stale_after": stale_after}
    return WorkflowService(adapters, worker, Reaper(adapters.job_queue, **reaping), relay, purger)
