"""What every server of ours does, wherever it comes from."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.throwaway import ThrowawayError, ThrowawayServer
from conformance.throwaway.errors import UnavailableError
from tests.throwaway.support import is_gone, run_id, server_or_skip


def test_it_answers_and_is_what_it_says(each_server: ThrowawayServer, query: Callable[..., Any]) -> None:
    [(version,)] = query(each_server.dsn, "SHOW server_version")
    assert version.split()[0] == each_server.version
    assert each_server.rung.endswith(f"-{each_server.version.split('.')[0]}")
    assert each_server.reasons == ()


def test_a_killed_server_remembers_commits(each_server: ThrowawayServer, query: Callable[..., Any]) -> None:
    settings = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('TimeZone')"
    assert query(each_server.dsn, settings) == [("on", "off", "UTC")]
    with each_server.database() as dsn:
        query(dsn, "CREATE TABLE t AS SELECT 1 AS a")
        each_server.kill()
        with pytest.raises(UnavailableError):
            query(dsn, "SELECT a FROM t")
        each_server.restart()
        assert query(dsn, "SELECT a FROM t") == [(1,)]


def test_a_stopped_server_is_down_until_it_is_restarted(
    each_server: ThrowawayServer, query: Callable[..., Any]
) -> None:
    with each_server.database() as dsn:
        query(dsn, "CREATE TABLE t AS SELECT 1 AS a")
        each_server.stop()
        each_server.stop()
        with pytest.raises(UnavailableError):
            query(dsn, "SELECT a FROM t")
        with pytest.raises(ThrowawayError):
            each_server.create_database()
        each_server.restart()
        each_server.restart()
        assert query(dsn, "SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize("rung", ["embedded-16", "testcontainers"])
@pytest.mark.parametrize("end", [ThrowawayServer.kill, ThrowawayServer.stop])
def test_nothing_is_left_of_a_server_that_is_down(rung: str, end: Callable[[ThrowawayServer], None]) -> None:
    with server_or_skip(rung, settings={"shared_buffers": "32MB"}) as server:
        assert not is_gone(run_id(server), server.rung)
        end(server)
    assert is_gone(run_id(server), server.rung)


def test_its_own_settings_are_in_force(query: Callable[..., Any]) -> None:
    with server_or_skip("embedded-16", settings={"fsync": "on", "work_mem": "7MB"}) as server:
        assert query(server.dsn, "SELECT current_setting('fsync'), current_setting('work_mem')") == [("on", "7MB")]


def test_no_text_about_it_shows_the_password(each_server: ThrowawayServer) -> None:
    password = each_server.dsn.split(":")[2].split("@")[0]
    assert password not in repr(each_server)
    assert password not in str(vars(each_server)["_instance"])
