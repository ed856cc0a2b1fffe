"""The queue as the conformance harness takes it.

python -m conformance run examples.custom_adapter.testing:specs --dsn redis://localhost:6379/0
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from redis.asyncio import Redis

from conformance import Env, Fixture, Parameters, Port, Spec
from examples.custom_adapter import fields
from examples.custom_adapter.job_queue import RedisJobQueue
from examples.custom_adapter.opening import open_redis_queue
from examples.custom_adapter.scripts import Script
from workflow_adapters import (
    Clock,
    JsonValue,
    SupportsAbsoluteLease,
    SupportsCompleteMany,
    SupportsDefer,
    SupportsDequeueMany,
    SupportsHeartbeat,
    SupportsWorkerAdoption,
)

# Not there: SupportsFairness, which needs a count for each group, and SupportsWaiting, so that workers poll.
CAPABILITIES: Final = (
    SupportsDefer,
    SupportsAbsoluteLease,
    SupportsWorkerAdoption,
    SupportsHeartbeat,
    SupportsDequeueMany,
    SupportsCompleteMany,
)

# Redis writes to its disk every second at best, and to its replicas later: when it dies, what it has acknowledged can
# be lost. One script runs at a time. The queue stands alone, so nobody looks for the run of a job.
PARAMETERS: Final = Parameters(clock="caller", durability="process", writers="one", parents="unchecked")
PARAMETERS_ON_REDIS_TIME: Final = replace(PARAMETERS, clock="database")

_STORE_PAYLOAD: Final = Script("change(load(given.job_id), {payload = given.payload, workflow_id = given.workflow_id})")
_MANY: Final = 1000


@asynccontextmanager
async def make_queue(env: Env) -> AsyncGenerator[Fixture[RedisJobQueue]]:
    """With the harness's clock, which clauses move: so each of them can be tried."""
    async with _opened(env, env.clock) as fixture:
        yield fixture


@asynccontextmanager
async def make_queue_on_redis_time(env: Env) -> AsyncGenerator[Fixture[RedisJobQueue]]:
    """As it runs in production. What needs an exact span can not be tried here."""
    async with _opened(env, None) as fixture:
        yield fixture


async def delete_keys(redis: Redis, prefix: str) -> None:
    """Delete all that a queue of this prefix has stored."""
    keys = [key async for key in redis.scan_iter(match=f"{prefix}*", count=_MANY)]
    for start in range(0, len(keys), _MANY):
        await redis.unlink(*keys[start : start + _MANY])


@asynccontextmanager
async def _opened(env: Env, clock: Clock | None) -> AsyncGenerator[Fixture[RedisJobQueue]]:
    url = env.dsn or os.environ.get("REDIS_URL", "redis://localhost:6379/0")
    prefix = f"{env.namespace}:"
    async with (
        Redis.from_url(url) as outside,
        open_redis_queue(url, prefix=prefix, worker_id=env.worker_id, clock=clock) as queue,
    ):

        async def reset() -> None:
            await delete_keys(outside, prefix)

        async def store_payload(job_id: str, payload: JsonValue) -> None:
            # As another writer of these keys would: the workflow, which the contract has in the payload, is a field.
            workflow_id = payload.get("_workflowId") if isinstance(payload, dict) else None
            named = workflow_id if isinstance(workflow_id, str) else False
            given = {"job_id": job_id, "payload": json.dumps(payload), "workflow_id": named}
            now = "" if clock is None else fields.written(clock.now())
            await outside.eval(_STORE_PAYLOAD.text, 1, prefix, now, json.dumps(given))

        try:
            yield Fixture(adapter=queue, reset=reset, store_payload=store_payload)
        finally:
            if env.instance == "A":
                await reset()


# A namespace is a prefix of keys, so several processes may try the queue at once.
queue: Final = Spec(
    port=Port.JOB_QUEUE,
    factory=make_queue,
    name="redis",
    capabilities=CAPABILITIES,
    parameters=PARAMETERS,
    side_by_side=True,
)
queue_on_redis_time: Final = Spec(
    port=Port.JOB_QUEUE,
    factory=make_queue_on_redis_time,
    name="redis on its own time",
    capabilities=CAPABILITIES,
    parameters=PARAMETERS_ON_REDIS_TIME,
    side_by_side=True,
)
specs: Final = [queue, queue_on_redis_time]
