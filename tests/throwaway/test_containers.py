"""Containers: labelled, found again by their labels, and no reaper."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.throwaway import NotAvailableError, ThrowawayServer, blocking_postgres, docker_engine
from conformance.throwaway import container as container_module
from conformance.throwaway.docker_engine import RUN_LABEL, SERVER_LABEL, docker_client, remove_expired_containers
from tests.throwaway.support import run_id

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawayServer]:
    # A label of this test alone: the sweep below must not take others' containers.
    monkeypatch.setattr(docker_engine, "RUN_LABEL", "workflow-adapters-sweep-test")
    monkeypatch.setenv("RUN_ID", "sweep-1")
    with blocking_postgres("testcontainers") as server:
        yield server


def labels(server: ThrowawayServer) -> list[dict[str, str]]:
    """Those of the server's containers: one list entry for each that there is."""
    with docker_client() as client:
        found = client.api.containers(all=True, filters={"label": f"{SERVER_LABEL}={run_id(server)}"})
    return [container["Labels"] for container in found]


def test_the_label_names_the_run_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_ID", "ci-42")
    with blocking_postgres("testcontainers") as server:
        [own] = labels(server)
    assert own[RUN_LABEL] == "ci-42"
    monkeypatch.delenv("RUN_ID")
    with blocking_postgres("testcontainers") as server:
        [own] = labels(server)
    assert own[RUN_LABEL] == run_id(server)


def test_only_what_is_older_than_two_hours_is_swept(
    container: ThrowawayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = docker_engine.time.time()
    monkeypatch.setattr(docker_engine.time, "time", lambda: now + 2 * 60 * 60 - 60)
    remove_expired_containers()
    assert len(labels(container)) == 1
    monkeypatch.setattr(docker_engine.time, "time", lambda: now + 2 * 60 * 60 + 60)
    remove_expired_containers()
    assert labels(container) == []


def test_the_users_reaper_is_left_as_it_was() -> None:
    from testcontainers.core.config import testcontainers_config

    before = testcontainers_config.ryuk_disabled
    testcontainers_config.ryuk_disabled = False
    try:
        with blocking_postgres("testcontainers"):
            assert not testcontainers_config.ryuk_disabled
    finally:
        testcontainers_config.ryuk_disabled = before


def test_a_restart_keeps_the_address(query: Callable[..., Any]) -> None:
    with blocking_postgres("testcontainers", settings={"work_mem": "7MB"}) as server:
        server.restart()
        assert query(server.dsn, "SHOW work_mem") == [("7MB",)]


def test_a_port_that_somebody_else_takes_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, query: Callable[..., Any]
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        real = container_module._choose_port
        ports = [taken.getsockname()[1]]
        monkeypatch.setattr(container_module, "_choose_port", lambda: ports.pop() if ports else real())
        with blocking_postgres("testcontainers") as server:
            assert not ports
            assert query(server.dsn, "SELECT 1") == [(1,)]
            assert len(labels(server)) == 1


def test_an_image_that_can_not_be_had_is_the_reason() -> None:
    with (
        pytest.raises(NotAvailableError, match=r"testcontainers-99: cannot pull postgres:99: "),
        blocking_postgres("testcontainers-99"),
    ):
        pass


def test_a_server_that_ends_at_once_gives_its_last_words() -> None:
    with (
        pytest.raises(NotAvailableError, match=r'unrecognized configuration parameter "no_such_setting"'),
        blocking_postgres("testcontainers", settings={"no_such_setting": "1"}),
    ):
        pass
