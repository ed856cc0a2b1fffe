"""The user's program runs, and leaves nothing out."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.typing import user_program
from workflow_adapters import (
    BuiltInAdapters,
    BuiltInAICallLogger,
    BuiltInJobQueue,
    BuiltInPersistence,
    BuiltInPostgresAdapters,
    BuiltInStepLedger,
    open_memory,
    open_postgres,
    open_sqlite,
)
from workflow_adapters.opening import Opening

PORTS = (BuiltInPersistence, BuiltInJobQueue, BuiltInStepLedger, BuiltInAICallLogger)
# SQLAlchemy's connections are tried in tests/typing/refused.py; what a transaction hands out is the driver's.
ELSEWHERE = {"bind_sqlalchemy"}


@pytest.mark.asyncio
@pytest.mark.parametrize("opening", [open_memory, open_sqlite], ids=["memory", "sqlite"])
async def test_it_runs(opening: Callable[[], Opening]) -> None:
    async with opening() as adapters:
        await user_program.use(adapters)


@pytest.mark.asyncio
async def test_it_runs_on_postgres(postgres_dsn: str) -> None:
    async with open_postgres(postgres_dsn) as adapters:
        assert isinstance(adapters, BuiltInPostgresAdapters)
        await user_program.use(adapters)


@pytest.mark.asyncio
async def test_only_postgres_is_told_from_the_others_by_isinstance() -> None:
    async with open_memory() as memory, open_sqlite() as sqlite:
        assert not isinstance(memory, BuiltInPostgresAdapters)
        assert not isinstance(sqlite, BuiltInPostgresAdapters)


@pytest.mark.parametrize("type_", [*PORTS, BuiltInAdapters, BuiltInPostgresAdapters])
def test_it_uses_everything(type_: type) -> None:
    assert user_program.__file__ is not None
    tree = ast.parse(Path(user_program.__file__).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    members = {name for name, _ in inspect.getmembers(type_) if not name.startswith("_")}
    assert members - used - ELSEWHERE == set()
