"""What `open_sqlite` was given: the file and its options, checked before anything is opened."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.sqlite.connection import Synchronous, Target, obtain, outlast

DEFAULT_BUSY_TIMEOUT: Final = timedelta(seconds=5)
DEFAULT_READERS: Final = 4

_SYNCHRONOUS: Final[dict[str, Synchronous]] = {"full": "FULL", "normal": "NORMAL"}


def checked_target(path: object, durability: object, busy_timeout: object) -> Target:
    """What to open. Without a path it is still to be given one. Settings come from anywhere, so types are checked."""
    synchronous = _SYNCHRONOUS.get(durability) if isinstance(durability, str) else None
    if synchronous is None:
        raise ConfigurationError(f"durability: {durability!r} must be 'full' or 'normal'")
    if not isinstance(busy_timeout, timedelta) or busy_timeout <= timedelta(0):
        raise ConfigurationError(f"busy_timeout: must be a timedelta greater than 0, not {busy_timeout!r}")
    name = "" if path is None else _file_name(path)
    return Target(path=name, synchronous=synchronous, busy_timeout=busy_timeout.total_seconds())


def checked_readers(readers: object) -> int:
    """How many connections may read at once."""
    if isinstance(readers, bool) or not isinstance(readers, int) or readers < 1:
        raise ConfigurationError(f"readers: must be an int of at least 1, not {readers!r}")
    return readers


def _file_name(path: object) -> str:
    try:
        name: object = os.fspath(cast("os.PathLike[str]", path))
    except TypeError:
        name = None
    if not isinstance(name, str):
        raise ConfigurationError(f"path: must be a str or a path, not {type(path).__name__}")
    if name in ("", ":memory:"):
        raise ConfigurationError("path: must be that of a file; without a path the database is a private throwaway one")
    if "\0" in name:
        raise ConfigurationError("path: must not hold U+0000")
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise ConfigurationError("path: holds a character that no file's name on this machine can have") from error
    # Connections are opened later, too, and the process may be in another directory by then.
    return str(Path(name).absolute())


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
