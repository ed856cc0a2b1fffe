"""Opening a queue on a Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import anyio
from redis.asyncio import BlockingConnectionPool

from examples.custom_adapter.job_queue import RedisJobQueue
from examples.custom_adapter.server import RedisServer
from workflow_adapters import Clock, ConfigurationError, RetryBackoff

DEFAULT_PREFIX: Final = "jobs:"
_DEFAULT_TIMEOUT: Final = timedelta(seconds=5)


@asynccontextmanager
async def open_redis_queue(
    url: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    worker_id: str | None = None,
    backoff: RetryBackoff | None = None,
    clock: Clock | None = None,
    max_connections: int = 10,
    busy_timeout: timedelta = _DEFAULT_TIMEOUT,
    call_timeout: timedelta = _DEFAULT_TIMEOUT,
) -> AsyncGenerator[RedisJobQueue]:
    """Open a queue on ``redis://``, ``rediss://`` or ``unix://``; queues of one prefix are one queue.

    `busy_timeout` is how long a call waits for a connection of the pool, `call_timeout` for Redis. Raises
    ConfigurationError for a URL, an account or a server that can not be used, BackendUnavailableError where there is
    none.
    """
    server = RedisServer(_pool(url, max_connections, busy_timeout, call_timeout))
    try:
        await server.check()
        yield RedisJobQueue(server, prefix=prefix, worker_id=worker_id, backoff=backoff or RetryBackoff(), clock=clock)
    finally:
        with anyio.CancelScope(shield=True):
            await server.close()


def _pool(url: str, size: int, busy_timeout: timedelta, call_timeout: timedelta) -> BlockingConnectionPool:
    try:
        return BlockingConnectionPool.from_url(
            url,
            max_connections=size,
            timeout=busy_timeout.total_seconds(),
            socket_timeout=call_timeout.total_seconds(),
            socket_connect_timeout=call_timeout.total_seconds(),
        )
    except ValueError:
        # Its text can hold parts of the password.
        raise ConfigurationError(
            "the Redis URL can not be read; write redis://[user[:password]@]host[:port][/database]"
        ) from None
