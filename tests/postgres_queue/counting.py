"""A connection that takes down what goes over it."""

from __future__ import annotations

from typing import Any

import asyncpg

_LOG: list[str] = []


class CountingConnection(asyncpg.Connection):
    """Hand it to `open_postgres` as ``connect={"connection_class": CountingConnection}``."""

    async def fetch(self, query: str, *args: Any, **kwargs: Any) -> list[Any]:
        _LOG.append(query.strip())
        return await super().fetch(query, *args, **kwargs)

    async def execute(self, query: str, *args: Any, **kwargs: Any) -> str:
        _LOG.append(query.strip())
        return await super().execute(query, *args, **kwargs)


def taken_down() -> list[str]:
    """What went over the connections since the last time."""
    said = _LOG.copy()
    _LOG.clear()
    return said
