"""The runtime inside a FastAPI (or Starlette) application; needs the extra ``fastapi``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Unpack

import anyio
from fastapi import APIRouter, FastAPI, Request, Response

from workflow_adapters.errors import WorkflowAdapterError
from workflow_adapters.runtime.health import look
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.options import ServiceOptions
from workflow_adapters.runtime.outcomes import Handler
from workflow_adapters.runtime.service import OpenAdapters, WorkflowService, run_workflow_service

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

_observation = Observation("health")

PATIENCE = 5
"""Seconds that a health check may take."""


def workflow_lifespan(open_bundle: OpenAdapters, handler: Handler, **options: Unpack[ServiceOptions]) -> Lifespan:
    """A lifespan that runs the workflow service inside the app: ``FastAPI(lifespan=workflow_lifespan(...))``.

    The options are those of `run_workflow_service`. The running service is ``app.state.workflow``.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with run_workflow_service(open_bundle, handler, **options) as service:
            app.state.workflow = service
            yield

    return lifespan


def workflow_service(request: Request) -> WorkflowService:
    """The running service, as a dependency of endpoints."""
    return request.app.state.workflow


health_router = APIRouter(tags=["health"])
"""``/healthz`` tells how the service is, 200 while the process answers; ``/readyz`` is 503 when it can not work.

Of an error of the database they tell the class alone; its text is in the log (event ``health_check_failed``).
"""


@health_router.get("/healthz")
async def healthz(request: Request) -> dict[str, Any]:
    return await _health(workflow_service(request))


@health_router.get("/readyz")
async def readyz(request: Request, response: Response) -> dict[str, Any]:
    health = await _health(workflow_service(request))
    if not health["ready"]:
        response.status_code = 503
    return health


async def _health(service: WorkflowService) -> dict[str, Any]:
    try:
        with anyio.fail_after(PATIENCE):
            return await look(service)
    except (WorkflowAdapterError, TimeoutError) as error:
        # Who may ask is not known here, and the text can name a host, a port or a role.
        _observation.note(Event.HEALTH_CHECK_FAILED, f"a look at the database failed: {error!r}", error=repr(error))
        return {"ready": False, "reason": type(error).__name__, "worker": {"running": service.worker.running}}
