"""The memory adapters as the harness takes them."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from conformance.answers import CAPABILITIES
from conformance.backend import Env, Fixture, Spec
from conformance.builders import run, stage
from conformance.clause import Parameters, Port
from workflow_adapters.json_values import JsonValue
from workflow_adapters.memory.bundle import DEFAULT_BUSY_TIMEOUT, open_memory
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.ports.adapters import Adapters

PARAMETERS = Parameters(clock="caller", durability="process", writers="one")

_stores: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()


@asynccontextmanager
async def opened(env: Env) -> AsyncIterator[tuple[MemoryStore, Adapters]]:
    """A bundle on the namespace's store, which lives as long as one of its bundles."""
    store = _stores.setdefault(env.namespace, MemoryStore())
    async with open_memory(
        store=store,
        clock=env.clock,
        worker_id=env.worker_id,
        fairness=env.fairness,
        busy_timeout=env.busy_timeout or DEFAULT_BUSY_TIMEOUT,
    ) as adapters:
        yield store, adapters


def fixture(store: MemoryStore, adapters: Adapters, adapter: Any) -> Fixture[Any]:
    async def new_run() -> str:
        return (await adapters.persistence.create_run(run())).id

    async def new_stage() -> str:
        return (await adapters.persistence.create_stage(stage(await new_run()))).id

    async def store_payload(job_id: str, payload: JsonValue) -> None:
        for tables in (store.working, store.committed):
            job = tables.jobs.get(job_id)
            assert job is not None
            tables.jobs.restore(job_id, replace(job, payload=payload))

    return Fixture(adapter=adapter, new_run=new_run, new_stage=new_stage, store_payload=store_payload)


def _factory(port: str) -> Callable[[Env], Any]:
    @asynccontextmanager
    async def make(env: Env) -> AsyncIterator[Fixture[Any]]:
        async with opened(env) as (store, adapters):
            yield fixture(store, adapters, getattr(adapters, port))

    return make


make_persistence = _factory("persistence")
make_job_queue = _factory("job_queue")
make_step_ledger = _factory("step_ledger")
make_ai_call_logger = _factory("ai_call_logger")

_FACTORIES = {
    Port.WORKFLOW_PERSISTENCE: make_persistence,
    Port.JOB_QUEUE: make_job_queue,
    Port.STEP_LEDGER: make_step_ledger,
    Port.AI_CALL_LOGGER: make_ai_call_logger,
}


def spec(port: Port) -> Spec:
    protocol = next(kind for kind in CAPABILITIES if kind.__name__ == port.title)
    return Spec(
        port=port,
        factory=_FACTORIES[port],
        name="memory",
        capabilities=CAPABILITIES[protocol],
        parameters=PARAMETERS,
        location=f"{__name__}:{_FACTORIES[port].__name__}",
    )
