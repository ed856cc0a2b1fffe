"""Runs scripts on Redis: a pooled connection for each call, no silent second try, and the contract's errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import redis.exceptions as driver
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection

from examples.custom_adapter.errors import call_failed, not_connected
from examples.custom_adapter.scripts import Script
from workflow_adapters import ConfigurationError, UsageError


class RedisServer:
    """Works below redis-py's client, which repeats a call when its reply is lost: a claim would be made twice."""

    def __init__(self, pool: BlockingConnectionPool) -> None:
        self._pool = pool
        self._is_closed = False

    async def run(self, script: Script, prefix: str, *arguments: str) -> bytes:
        """What the script answers."""
        async with self._connection() as connection:
            try:
                return await _evaluate(connection, script, prefix, *arguments)
            except (driver.RedisError, OSError) as error:
                raise call_failed(error, writes=script.writes) from error

    async def check(self) -> None:
        """Refuse a Redis that can not run the scripts, or that loses jobs by design."""
        async with self._connection() as connection:
            try:
                await connection.send_command("INFO")
                told: Any = await connection.read_response()
            except (driver.RedisError, OSError) as error:
                raise call_failed(error, writes=False) from error
        refuse_unfit(dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line))

    async def close(self) -> None:
        self._is_closed = True
        await self._pool.aclose()

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[AbstractConnection]:
        if self._is_closed:
            raise UsageError("this queue is closed; open another one")
        try:
            connection = await self._pool.get_connection()
        except (driver.RedisError, OSError) as error:
            raise not_connected(error) from error
        try:
            yield connection
        finally:
            # redis-py has cut a connection whose reply was not read to its end.
            await self._pool.release(connection)


async def _evaluate(connection: AbstractConnection, script: Script, *arguments: str) -> Any:
    try:
        await connection.send_command("EVALSHA", script.digest, 1, *arguments)
        return await connection.read_response()
    except driver.NoScriptError:
        await connection.send_command("EVAL", script.text, 1, *arguments)
        return await connection.read_response()


def refuse_unfit(info: dict[str, str]) -> None:
    """Check the answer to INFO."""
    version = info.get("redis_version", "")
    if not version.partition(".")[0].isdecimal() or int(version.partition(".")[0]) < 7:  # noqa: PLR2004 - has `#!lua`
        raise ConfigurationError(f"the scripts need Redis 7 or newer, this is {version or 'unknown'}")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys"):
        raise ConfigurationError(f"maxmemory-policy {policy} throws jobs away when memory is short; set noeviction")
