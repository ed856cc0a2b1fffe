"""The built-in adapters as the harness takes them: four ports on each backend.

python -m conformance run tests.conformance.backends:all_specs
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from conformance.answers import capabilities_of
from conformance.backend import Env, Fixture, Spec
from conformance.builders import run, stage
from conformance.clause import Parameters, Port
from workflow_adapters.json_values import JsonValue
from workflow_adapters.memory.bundle import open_memory
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.ports.adapters import Adapters

Open: TypeAlias = Callable[[Env], AbstractAsyncContextManager[Fixture[Adapters]]]


def specs_of(name: str, open_bundle: Open, parameters: Parameters, **options: Any) -> list[Spec]:
    """One Spec for each port of a bundle, with everything that the built-in adapters have declared."""
    return [
        Spec(
            port=port,
            factory=_factory(port, open_bundle),
            name=name,
            capabilities=capabilities_of(port),
            parameters=parameters,
            **options,
        )
        for port in Port
    ]


def _factory(port: Port, open_bundle: Open) -> Callable[[Env], AbstractAsyncContextManager[Fixture[Any]]]:
    @asynccontextmanager
    async def make(env: Env) -> AsyncGenerator[Fixture[Any]]:
        async with open_bundle(env) as bundle:
            yield replace(
                _with_parents(bundle), adapter=getattr(bundle.adapter, port.name.lower().removeprefix("workflow_"))
            )

    return make


def _with_parents(bundle: Fixture[Adapters]) -> Fixture[Any]:
    persistence = bundle.adapter.persistence

    async def new_run() -> str:
        return (await persistence.create_run(run())).id

    async def new_stage() -> str:
        return (await persistence.create_stage(stage(await new_run()))).id

    return replace(bundle, new_run=new_run, new_stage=new_stage)


def options_of(env: Env) -> dict[str, Any]:
    """The keyword arguments that every ``open_*`` takes from the environment."""
    given = {"clock": env.clock, "worker_id": env.worker_id, "fairness": env.fairness, "busy_timeout": env.busy_timeout}
    return {name: value for name, value in given.items() if value is not None}


_stores: Final[weakref.WeakValueDictionary[str, MemoryStore]] = weakref.WeakValueDictionary()


@asynccontextmanager
async def open_on_memory(env: Env) -> AsyncGenerator[Fixture[Adapters]]:
    """A bundle on the namespace's store, which lives as long as one of its bundles."""
    store = _stores.setdefault(env.namespace, MemoryStore())

    async def store_payload(job_id: str, payload: JsonValue) -> None:
        for tables in (store.working, store.committed):
            job = tables.jobs.get(job_id)
            assert job is not None
            tables.jobs.restore(job_id, replace(job, payload=payload))

    async with open_memory(store=store, **options_of(env)) as adapters:
        yield Fixture(adapter=adapters, store_payload=store_payload)


memory: Final = specs_of("memory", open_on_memory, Parameters(clock="caller", writers="one"))

all_specs: Final = [*memory]
