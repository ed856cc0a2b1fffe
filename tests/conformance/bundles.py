"""From a bundle to its four ports, each with a Spec of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from conformance.answers import capabilities_of
from conformance.backend import Env, Fixture, Spec
from conformance.builders import run, stage
from conformance.clause import Parameters, Port
from workflow_adapters.ports.adapters import Adapters

Open: TypeAlias = Callable[[Env], AbstractAsyncContextManager[Fixture[Adapters]]]


_ATTRIBUTES: Final = {
    Port.WORKFLOW_PERSISTENCE: "persistence",
    Port.JOB_QUEUE: "job_queue",
    Port.STEP_LEDGER: "step_ledger",
    Port.AI_CALL_LOGGER: "ai_call_logger",
}


def specs_of(name: str, open_bundle: Open, parameters: Callable[[Port], Parameters], **options: Any) -> list[Spec]:
    """One Spec for each port, with everything that the built-in adapters promise."""
    return [
        Spec(
            port=port,
            factory=_factory(port, open_bundle),
            name=name,
            capabilities=capabilities_of(port),
            parameters=parameters(port),
            **options,
        )
        for port in Port
    ]


def options_of(env: Env) -> dict[str, Any]:
    """The keyword arguments that every ``open_*`` takes from the environment."""
    given = {"clock": env.clock, "worker_id": env.worker_id, "fairness": env.fairness, "busy_timeout": env.busy_timeout}
    return {name: value for name, value in given.items() if value is not None}


def _factory(port: Port, open_bundle: Open) -> Callable[[Env], AbstractAsyncContextManager[Fixture[Any]]]:
    @asynccontextmanager
    async def make(env: Env) -> AsyncGenerator[Fixture[Any]]:
        async with open_bundle(env) as bundle:
            yield replace(_with_parents(bundle), adapter=getattr(bundle.adapter, _ATTRIBUTES[port]))

    return make


def _with_parents(bundle: Fixture[Adapters]) -> Fixture[Any]:
    persistence = bundle.adapter.persistence

    async def new_run() -> str:
        return (await persistence.create_run(run())).id

    async def new_stage() -> str:
        return (await persistence.create_stage(stage(await new_run()))).id

    return replace(bundle, new_run=new_run, new_stage=new_stage)
