"""A file for each test, and somebody else who may lock it."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.sqlite.support import Lock, opened
from workflow_adapters.sqlite import patience
from workflow_adapters.sqlite.pool import PooledDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest_asyncio.fixture
async def database(path: Path) -> AsyncIterator[PooledDatabase]:
    async with opened(path) as database:
        yield database


@pytest.fixture
def lock(path: Path) -> Iterator[Lock]:
    somebody_else = Lock(path)
    yield somebody_else
    somebody_else.close()


@pytest.fixture
def pausing(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as a connection's thread waits for the lock."""
    reached = threading.Event()

    class Time:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            reached.set()
            time.sleep(seconds)

    monkeypatch.setattr(patience, "time", Time)
    return reached
