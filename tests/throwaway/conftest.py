"""Servers to look at, programs that hold one, and what is left of them."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.throwaway import ThrowawayServer, blocking_postgres
from conformance.throwaway.background_loop import BackgroundLoop
from conformance.throwaway.docker_engine import require_engine
from conformance.throwaway.errors import UnavailableError
from conformance.throwaway.probe import connect
from tests.throwaway.support import Holder, server_or_skip


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    loop = BackgroundLoop()
    yield loop
    loop.close()


@pytest.fixture
def query(loop: BackgroundLoop) -> Callable[..., Any]:
    """Runs a statement on a connection of its own and returns its rows as tuples."""

    async def ask(dsn: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        connection = await connect(dsn)
        try:
            return [tuple(row) for row in await connection.fetch(statement, *values)]
        finally:
            await connection.close(timeout=10)

    return lambda dsn, statement, *values: loop.run(ask(dsn, statement, *values), 30)


@pytest.fixture
def script(loop: BackgroundLoop) -> Callable[[str, str], None]:
    """Runs several statements on a connection of its own."""

    async def run(dsn: str, statements: str) -> None:
        connection = await connect(dsn)
        try:
            await connection.execute(statements)
        finally:
            await connection.close(timeout=10)

    return lambda dsn, statements: loop.run(run(dsn, statements), 30)


@pytest.fixture(scope="module", params=["embedded-16", "embedded-18", "local", "testcontainers"])
def each_server(request: pytest.FixtureRequest) -> Iterator[ThrowawayServer]:
    with server_or_skip(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def server() -> Iterator[ThrowawayServer]:
    """For tests that leave the server itself as it is: to start one takes more than most of them."""
    with blocking_postgres("embedded-16") as server:
        yield server


@pytest.fixture
def engine() -> None:
    try:
        require_engine()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def hold() -> Iterator[Callable[[str], Holder]]:
    """Starts programs that each hold a server of a rung."""
    started: list[subprocess.Popen[str]] = []

    def start(rung: str) -> Holder:
        process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("hold_server.py"), rung],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.fail(process.communicate()[1])
        return Holder(process, **json.loads(line))

    yield start
    for process in started:
        process.kill()
        process.communicate()
