"""What `open_sqlite` was given: the file and its options, checked before anything is opened."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.sqlite.connection import Synchronous, Target, obtain, outlast

Durability: TypeAlias = Literal["full", "normal"]

DEFAULT_BUSY_TIMEOUT: Final = timedelta(seconds=5)
DEFAULT_READERS: Final = 4

_SYNCHRONOUS: Final[dict[str, Synchronous]] = {"full": "FULL", "normal": "NORMAL"}


def checked_target(path: str | os.PathLike[str] | None, durability: str, busy_timeout: timedelta) -> Target:
    """What to open. Without a path it is still to be given one."""
    if durability not in _SYNCHRONOUS:
        raise ConfigurationError(f"durability: {durability!r} must be 'full' or 'normal'")
    if busy_timeout <= timedelta(0):
        raise ConfigurationError(f"busy_timeout: {busy_timeout!r} must be greater than 0")
    name = "" if path is None else os.fspath(path)
    if path is not None and name in ("", ":memory:"):
        raise ConfigurationError("path: must be that of a file; without a path the database is a private throwaway one")
    if "\0" in name:
        raise ConfigurationError("path: must not hold U+0000")
    return Target(path=name, synchronous=_SYNCHRONOUS[durability], busy_timeout=busy_timeout.total_seconds())


@asynccontextmanager
async def throwaway_directory() -> AsyncGenerator[Path]:
    """A directory that is gone after the block."""
    making = asyncio.to_thread(TemporaryDirectory[str], prefix="workflow-adapters-")
    directory = await obtain(making, _remove)
    try:
        yield Path(directory.name)
    finally:
        await outlast(asyncio.ensure_future(_remove(directory)))


async def _remove(directory: TemporaryDirectory[str]) -> None:
    await asyncio.to_thread(directory.cleanup)
