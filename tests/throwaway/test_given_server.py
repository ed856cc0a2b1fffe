"""The server that CONFORMANCE_POSTGRES_DSN names: used, and left as it was."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.throwaway import NotAvailableError, Refusal, ThrowawayError, ThrowawayServer, blocking_postgres
from conformance.throwaway.dsn import with_database
from conformance.throwaway.given import VARIABLE
from tests.throwaway.support import Holder, eventually, is_gone, run_id

Query = Callable[..., Any]
DATABASES = "SELECT datname FROM pg_database ORDER BY datname"


@pytest.fixture
def given(server: ThrowawayServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The DSN of a database that somebody else has on the server."""
    with server.database() as dsn:
        monkeypatch.setenv(VARIABLE, dsn)
        monkeypatch.delenv("CONFORMANCE_POSTGRES_RUNG", raising=False)
        yield dsn


def test_it_is_used_and_left_as_it_was(given: str, query: Query) -> None:
    query(given, "CREATE TABLE theirs AS SELECT 1 AS a")
    before = query(given, DATABASES)
    with blocking_postgres() as server:
        assert server.rung == "dsn"
        assert server.dsn != given
        query(server.dsn, "CREATE TABLE ours AS SELECT 1 AS a")
        server.create_database()
        assert len(query(given, DATABASES)) == len(before) + 3
    assert query(given, DATABASES) == before
    assert query(given, "SELECT a FROM theirs") == [(1,)]
    assert query(given, "SELECT to_regclass('ours')::text") == [(None,)]


def test_it_is_not_ours_to_stop(given: str) -> None:
    with blocking_postgres("dsn") as server:
        for call in (server.stop, server.kill, server.restart):
            with pytest.raises(ThrowawayError, match=rf"{VARIABLE} is not the harness's to"):
                call()
        assert server.create_database()
    assert given


def reason(preferred: str = "dsn", **options: Any) -> str:
    with pytest.raises(NotAvailableError) as caught, blocking_postgres(preferred, **options):
        pass
    [(rung, why)] = caught.value.reasons
    assert rung == "dsn"
    return why


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("CREATE ROLE guest LOGIN PASSWORD 'hunter2'", "permission denied to create database"),
        ("CREATE ROLE guest LOGIN PASSWORD 'other'", 'password authentication failed for user "guest"'),
        ("CREATE ROLE guest LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 0", "too many connections"),
    ],
)
def test_what_it_refuses_is_the_reason(
    given: str, query: Query, monkeypatch: pytest.MonkeyPatch, statement: str, complaint: str
) -> None:
    query(given, statement)
    try:
        monkeypatch.setenv(VARIABLE, "postgresql://guest:hunter2@" + given.partition("@")[2])
        why = reason()
        assert complaint in why
        assert "hunter2" not in why
    finally:
        query(given, "DROP ROLE guest")


@pytest.mark.parametrize("dsn", ["postgresql://u:hunter2@h:x1/db", "host=h password=hunter2", "postgresql://u:hunter2"])
def test_a_url_that_can_not_be_read_is_not_quoted(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    monkeypatch.setenv(VARIABLE, dsn)
    why = reason()
    assert "URL" in why
    assert "hunter2" not in why


def test_it_must_not_forget_commits(given: str, query: Query) -> None:
    query(given, "ALTER ROLE postgres SET synchronous_commit = off")
    try:
        assert "synchronous_commit is off" in reason()
    finally:
        query(given, "ALTER ROLE postgres RESET synchronous_commit")


def test_a_version_or_settings_that_it_does_not_have_are_refused(given: str) -> None:
    assert given
    assert reason("dsn-18") == "the server is PostgreSQL 16.14, not 18"
    assert "wanted: fsync, work_mem" in reason(settings={"fsync": "on", "work_mem": "1MB"})


def test_the_next_rung_is_taken_where_it_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://u:hunter2@127.0.0.1:1/x")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with blocking_postgres("18") as server:
        assert server.rung == "embedded-18"
    assert [refusal.rung for refusal in server.reasons][:2] == ["dsn", "testcontainers-18"]
    assert isinstance(server.reasons[0], Refusal)
    assert "hunter2" not in str(server.reasons)


def test_a_killed_run_leaves_no_databases(given: str, query: Query, hold: Callable[[str], Holder]) -> None:
    before = query(given, DATABASES)
    holder = hold("dsn")
    assert len(query(given, DATABASES)) == len(before) + 2
    holder.process.kill()
    assert eventually(lambda: query(given, DATABASES) == before)
    assert eventually(lambda: is_gone(holder.id, "dsn"))


def test_a_role_that_may_only_create_databases_is_enough(
    given: str, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    query(given, "CREATE ROLE tester LOGIN CREATEDB PASSWORD 'pw'")
    monkeypatch.setenv(VARIABLE, with_database("postgresql://tester:pw@" + given.partition("@")[2], "postgres"))
    try:
        with blocking_postgres("dsn") as server:
            query(server.dsn, "CREATE TABLE t AS SELECT 1 AS a")
            server.reset()
            assert query(server.dsn, "SELECT a FROM t") == []
        assert is_gone(run_id(server), "dsn")
    finally:
        query(given, "DROP ROLE tester")
