"""Databases on a server: copied, dropped, emptied, and never one that is not ours."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from conformance.throwaway import ForeignDatabaseError, ThrowawayError, ThrowawayServer, reset_database
from conformance.throwaway.background_loop import BackgroundLoop
from conformance.throwaway.databases import Databases
from conformance.throwaway.dsn import with_database
from conformance.throwaway.probe import connect

Query = Callable[..., Any]
Script = Callable[[str, str], None]

SCHEMA = """
CREATE TABLE parent (id int PRIMARY KEY, favourite int);
CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent ON DELETE RESTRICT);
ALTER TABLE parent ADD FOREIGN KEY (favourite) REFERENCES child;
CREATE TABLE log (id int GENERATED ALWAYS AS IDENTITY, at date) PARTITION BY RANGE (at);
CREATE TABLE log_2024 PARTITION OF log FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE SCHEMA "Odd name";
CREATE TABLE "Odd name"."Odd table" (a int);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'history stays'; END $$;
CREATE TRIGGER guard BEFORE DELETE ON log FOR EACH ROW EXECUTE FUNCTION refuse();
"""
ROWS = """
INSERT INTO parent VALUES (1, NULL), (2, NULL);
INSERT INTO child VALUES (1, 1), (2, 2);
UPDATE parent SET favourite = id;
INSERT INTO log (at) VALUES ('2024-05-05');
INSERT INTO "Odd name"."Odd table" VALUES (1);
"""
COUNTS = """
SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM child), (SELECT count(*) FROM log),
       (SELECT count(*) FROM "Odd name"."Odd table")
"""


@pytest.fixture
def filled(server: ThrowawayServer, script: Script) -> str:
    dsn = server.create_database()
    script(dsn, SCHEMA + ROWS)
    return dsn


def test_a_copy_begins_with_what_its_template_has(server: ThrowawayServer, filled: str, query: Query) -> None:
    copy = server.create_database(template=filled)
    assert query(copy, COUNTS) == [(2, 2, 1, 1)]
    server.reset(copy)
    assert query(copy, COUNTS) == [(0, 0, 0, 0)]
    assert query(filled, COUNTS) == [(2, 2, 1, 1)]


def test_every_database_is_another(server: ThrowawayServer) -> None:
    assert len({server.dsn, server.create_database(), server.create_database()}) == 3


def test_a_template_in_use_is_named(server: ThrowawayServer, filled: str, loop: BackgroundLoop) -> None:
    connection = loop.run(connect(filled), 10)
    try:
        with pytest.raises(ThrowawayError, match=r"^create_database: close the sessions on the template throwaway_"):
            server.create_database(template=filled)
    finally:
        loop.run(connection.close(), 10)


def test_dropping_ends_the_sessions_and_may_be_repeated(
    server: ThrowawayServer, filled: str, loop: BackgroundLoop
) -> None:
    connection = loop.run(connect(filled), 10)
    server.drop_database(filled)
    server.drop_database(filled)
    with pytest.raises(ThrowawayError, match="does not exist"):
        loop.run(connect(filled), 10)
    connection.terminate()


def test_a_database_is_dropped_when_its_block_fails(server: ThrowawayServer, query: Query) -> None:
    def fail() -> None:
        with server.database() as dsn:
            raise KeyError(dsn)

    with pytest.raises(KeyError) as caught:
        fail()
    [dsn] = caught.value.args
    with pytest.raises(ThrowawayError, match="does not exist"):
        query(dsn, "SELECT 1")


@pytest.mark.parametrize("name", ["postgres", "template1", "production", "throwaway_0123456789ab_x", "", 'a" b'])
def test_other_databases_are_neither_dropped_nor_copied(server: ThrowawayServer, name: str) -> None:
    dsn = with_database(server.dsn, name)
    with pytest.raises(ForeignDatabaseError, match="is not one that this server made"):
        server.drop_database(dsn)
    with pytest.raises(ForeignDatabaseError):
        server.create_database(template=dsn)


def test_reset_empties_tables_whatever_refers_to_what(server: ThrowawayServer, filled: str, query: Query) -> None:
    server.reset(filled)
    assert query(filled, COUNTS) == [(0, 0, 0, 0)]
    server.reset(filled)


def test_reset_keeps_what_it_is_told_to(server: ThrowawayServer, filled: str, query: Query) -> None:
    server.reset(filled, keep=["log", '"Odd name"."Odd table"'])
    assert query(filled, COUNTS) == [(0, 0, 1, 1)]


def test_reset_refuses_to_keep_what_is_not_there(server: ThrowawayServer, filled: str, query: Query) -> None:
    with pytest.raises(ThrowawayError, match='keep names a table that is not there: relation "lgo"'):
        server.reset(filled, keep=["lgo"])
    assert query(filled, COUNTS) == [(2, 2, 1, 1)]


def test_reset_is_one_statement_on_the_callers_connection(filled: str, loop: BackgroundLoop) -> None:
    async def main() -> tuple[list[str], int]:
        connection = await connect(filled)
        statements: list[str] = []
        with connection.query_logger(lambda record: statements.append(record.query)):
            await reset_database(connection)
        left = await connection.fetchval("SELECT count(*) FROM child")
        replicating = await connection.fetchval("SHOW session_replication_role")
        assert replicating == "origin"
        await connection.close()
        return statements, left

    statements, left = loop.run(main(), 30)
    assert len(statements) == 1
    assert left == 0


def test_reset_refuses_a_foreign_database(server: ThrowawayServer, query: Query, script: Script) -> None:
    query(server.dsn, "CREATE DATABASE production TEMPLATE template0")
    foreign = with_database(server.dsn, "production")
    script(foreign, "CREATE TABLE t AS SELECT 1 AS a")
    try:
        with pytest.raises(ForeignDatabaseError):
            server.reset(foreign)
        assert query(foreign, "SELECT a FROM t") == [(1,)]
    finally:
        query(server.dsn, "DROP DATABASE production")


def test_reset_refuses_a_throwaway_restored_under_another_name(
    server: ThrowawayServer, filled: str, query: Query
) -> None:
    name = filled.rpartition("/")[2]
    query(server.dsn, f'CREATE DATABASE restored TEMPLATE "{name}"')
    foreign = with_database(server.dsn, "restored")
    try:
        with pytest.raises(ForeignDatabaseError):
            server.reset(foreign)
        assert query(foreign, COUNTS) == [(2, 2, 1, 1)]
    finally:
        query(server.dsn, "DROP DATABASE restored")


def test_any_number_of_threads_may_ask_at_once(server: ThrowawayServer) -> None:
    async def main() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(server.create_database) for _ in range(5)))

    assert len(set(asyncio.run(main()))) == 5


def test_databases_of_dead_runs_are_dropped_and_of_live_ones_not(server: ThrowawayServer, query: Query) -> None:
    maintenance = with_database(server.dsn, "postgres")
    dead = Databases(maintenance, "00dead", copies_files=False)
    live = Databases(maintenance, "00aaaa", copies_files=False)
    for databases in (dead, live):
        databases.prepare()
    dead.close()
    sweeping = Databases(maintenance, "00bbbb", copies_files=False)
    sweeping.drop_abandoned()
    names = {name for (name,) in query(server.dsn, "SELECT datname FROM pg_database")}
    assert "throwaway_00dead_base" not in names
    assert "throwaway_00aaaa_base" in names
    assert server.dsn.rpartition("/")[2] in names
    live.drop_all()
    live.close()
    sweeping.close()
