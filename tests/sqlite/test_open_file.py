"""A database file that is removed, replaced or moved while it is open: nothing is written where nobody reads."""

import asyncio
from pathlib import Path

import pytest

from tests.sqlite.support import ids, opened, put, run
from workflow_adapters import BackendUnavailableError, open_sqlite
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio


async def put_in_transaction(database: PooledDatabase, id: str) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put(id)))


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def move_one(path: Path, to: Path) -> None:
    path.replace(to)


def move(path: Path, to: Path) -> None:
    """With what belongs to it, as an operator would."""
    for suffix in ("", "-wal", "-shm"):
        move_one(Path(f"{path}{suffix}"), Path(f"{to}{suffix}"))


async def commit_into_nothing(database: PooledDatabase, path: Path, aside: Path) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put("a")))
        move(path, aside)


async def test_a_file_that_was_removed_takes_and_gives_nothing_until_it_is_put_back(path: Path) -> None:
    aside = path.with_name("aside.db")
    async with opened(path, readers=4) as database:
        await database.write(run(put("a")))
        move(path, aside)
        refused = await asyncio.gather(
            *(database.write(run(put(f"b{n}"))) for n in range(5)),
            *(database.read(ids) for _ in range(10)),
            put_in_transaction(database, "c"),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in refused} == {BackendUnavailableError}
        assert set(names_in(path.parent)) == {f"aside.db{suffix}" for suffix in ("", "-wal", "-shm")}
        move(aside, path)
        await database.write(run(put("d")))
        assert await database.read(ids) == ["a", "d"]


async def test_a_file_that_was_replaced_is_not_taken_for_ours(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    async with opened(backup) as database:
        await database.write(run(put("backup")))
    async with opened(path) as database:
        move_one(backup, path)
        for call in (database.write(run(put("a"))), database.read(ids), put_in_transaction(database, "b")):
            with pytest.raises(BackendUnavailableError, match="replaced"):
                await call


async def test_a_transaction_does_not_commit_into_a_file_that_was_removed(path: Path) -> None:
    aside = path.with_name("aside.db")
    async with opened(path) as database:
        with pytest.raises(BackendUnavailableError):
            await commit_into_nothing(database, path, aside)
        move(aside, path)
        assert await database.read(ids) == []


async def test_a_relative_path_stays_what_it_was_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    async with open_sqlite("here.db") as adapters:
        await adapters.migrate()
        monkeypatch.chdir(elsewhere)
        found = await asyncio.gather(*(adapters.persistence.get_run("r") for _ in range(20)))
        assert found == [None] * 20
    assert names_in(elsewhere) == []
