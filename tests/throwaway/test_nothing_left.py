"""However a run ends, its server, processes, containers and directories go with it."""

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from conformance.throwaway import ThrowawayError, blocking_postgres, start_postgres
from conformance.throwaway.docker_engine import SERVER_LABEL, docker_client
from conformance.throwaway.installations import local_installations
from conformance.throwaway.processes import processes_on
from tests.throwaway.support import Holder, eventually, is_gone, run_directories, run_id, run_processes

Hold = Callable[[str], Holder]


def watchdogs_of(holder: Holder) -> list[int]:
    """Found by the directory in their command line, which is no other process's."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_text().split("\0") if entry.name.isdecimal() else []
        except OSError:
            continue
        if any(word.endswith("watchdog_main.py") for word in command) and any(holder.id in word for word in command):
            found.append(int(entry.name))
    return found


def _need(rung: str, request: pytest.FixtureRequest) -> str:
    """The rung, or a skip where a machine may well lack it."""
    if rung == "testcontainers":
        request.getfixturevalue("engine")
    if rung == "local" and not local_installations():
        pytest.skip("no server programs on this machine")
    return rung


# What is local differs from what is embedded in where its programs lie alone.
RUNGS = ("embedded-16", "testcontainers")


@pytest.mark.parametrize(
    ("rung", "number"),
    [
        *itertools.product(RUNGS, [signal.SIGINT, signal.SIGKILL]),
        # None of them is caught, so they are one way to die, whatever the rung.
        ("embedded-16", signal.SIGTERM),
        ("embedded-16", signal.SIGHUP),
    ],
)
def test_after_a_signal(hold: Hold, request: pytest.FixtureRequest, rung: str, number: signal.Signals) -> None:
    holder = hold(_need(rung, request))
    assert not is_gone(holder.id, holder.rung)
    assert len(watchdogs_of(holder)) == 1
    holder.process.send_signal(number)
    holder.process.wait(30)
    assert eventually(lambda: is_gone(holder.id, holder.rung))
    assert eventually(lambda: watchdogs_of(holder) == [])


@pytest.mark.parametrize("rung", RUNGS)
def test_after_its_end(hold: Hold, request: pytest.FixtureRequest, rung: str) -> None:
    holder = hold(_need(rung, request))
    holder.process.communicate(timeout=30)
    assert holder.process.returncode == 0
    assert is_gone(holder.id, holder.rung)
    assert eventually(lambda: watchdogs_of(holder) == [])


def test_interrupting_is_clean_before_the_program_has_ended(hold: Hold) -> None:
    holder = hold("embedded-16")
    holder.process.send_signal(signal.SIGINT)
    _, errors = holder.process.communicate(timeout=30)
    assert is_gone(holder.id, holder.rung)
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.fixture
def private_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary directory in which no run that happens meanwhile sweeps."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        Path(path).chmod(0o711)
        monkeypatch.setenv("TMPDIR", path)
        yield
        # What the watchdogs have still to do is written there.
        assert eventually(lambda: not any(Path(path).iterdir()))


def kill_with_watchdog(holder: Holder) -> None:
    [watchdog] = watchdogs_of(holder)
    os.kill(watchdog, signal.SIGKILL)
    holder.process.kill()
    holder.process.wait(30)


@pytest.mark.usefixtures("private_tmp")
@pytest.mark.parametrize(("rung", "next_rung"), [("embedded-16", "local"), ("local", "embedded-16")])
def test_the_next_run_sweeps_where_the_watchdog_was_killed_too(
    hold: Hold, request: pytest.FixtureRequest, rung: str, next_rung: str
) -> None:
    holder = hold(_need(rung, request))
    kill_with_watchdog(holder)
    [directory] = run_directories(holder.id)
    assert processes_on(directory / "data")
    live = hold(_need(next_rung, request))
    assert is_gone(holder.id, holder.rung)
    assert not is_gone(live.id, live.rung)


@pytest.mark.usefixtures("engine", "private_tmp")
def test_the_next_run_with_an_engine_sweeps_containers(hold: Hold) -> None:
    holder = hold("testcontainers")
    kill_with_watchdog(holder)
    hold("embedded-16")
    with docker_client() as client:
        assert client.containers.list(all=True, filters={"label": f"{SERVER_LABEL}={holder.id}"})
    live = hold("testcontainers")
    assert is_gone(holder.id, holder.rung)
    assert not is_gone(live.id, live.rung)


def test_a_killed_server_leaves_no_shared_memory(query: Callable[..., Any]) -> None:
    def segments() -> set[str]:
        return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}

    with blocking_postgres("embedded-16") as server:
        [(directory,)] = query(server.dsn, "SHOW data_directory")
        segment = (Path(directory) / "postmaster.pid").read_text().split("\n")[6].split()[1]
        assert segment in segments()
        server.kill()
    assert segment not in segments()


def test_a_killed_server_has_no_process_that_is_still_busy() -> None:
    async def main() -> int:
        async with start_postgres("embedded-16") as server:
            connection = await asyncpg.connect(server.dsn)
            backend = connection.get_server_pid()
            query = asyncio.create_task(connection.execute("SELECT count(*) FROM generate_series(1, 1e12::bigint)"))
            monitor = await asyncpg.connect(server.dsn)
            while await monitor.fetchval("SELECT state FROM pg_stat_activity WHERE pid = $1", backend) != "active":
                pass
            await server.kill()
            monitor.terminate()
            connection.terminate()
            await asyncio.wait([query])
            assert isinstance(query.exception(), OSError | asyncpg.PostgresError | asyncpg.InterfaceError)
            return backend

    backend = asyncio.run(main())
    stat = Path(f"/proc/{backend}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("rung", RUNGS)
def test_a_failing_block_leaves_nothing(request: pytest.FixtureRequest, rung: str) -> None:
    ids: list[str] = []

    def fail() -> None:
        with blocking_postgres(_need(rung, request)) as server:
            ids.append(run_id(server))
            assert not is_gone(ids[0], rung)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert is_gone(ids[0], rung)


FORKING = """
import os, time
from conformance.throwaway import ThrowawayError, blocking_postgres, start_postgres
with blocking_postgres("embedded-16") as server:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    os.write(1, server.dsn.encode())
os.kill(child, 0)
os.kill(child, 9)
"""


def test_a_forked_child_that_lives_on_is_no_reason_to_stay() -> None:
    result = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60, check=True)
    assert is_gone(result.stdout.split("_")[1], "embedded-16")


def test_a_server_whose_directory_somebody_removed_is_ended_all_the_same() -> None:
    ids: list[str] = []

    def lose() -> None:
        with blocking_postgres("embedded-16") as server:
            ids.append(run_id(server))
            [directory] = run_directories(ids[0])
            shutil.rmtree(directory)
            assert run_processes(ids[0])

    with pytest.raises(ThrowawayError, match="was removed while its server was in use"):
        lose()
    assert is_gone(ids[0], "embedded-16")
