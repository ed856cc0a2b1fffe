"""Fixtures for tests that want a Postgres. A test that asks for none of them is not affected in any way.

``postgres_dsn`` is a clean database for one test, ``postgres_server`` the server that it is on: one for the whole run,
also where pytest-xdist divides the run among workers. A suite overrides, with a fixture of the same name and scope,
``postgres_server`` to choose a version, ``postgres_template`` to have every database begin with its schema.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from conformance.throwaway import ThrowawayServer

_MISSING = "throwaway_postgres_missing"
_REPORT = pytest.StashKey[list[str]]()
_WORKER_REPORT = "throwaway_postgres"


class StartServer(Protocol):
    """What the fixture `throwaway_postgres` gives: `blocking_postgres` without its end, which is the session's."""

    def __call__(
        self, preferred: str | None = None, *, settings: Mapping[str, str] | None = None
    ) -> ThrowawayServer: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _MISSING,
        "what becomes of tests that want a throwaway Postgres where none can be had: fail (the default) or skip",
        default="fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (chosen := config.getini(_MISSING)) not in ("fail", "skip"):
        raise pytest.UsageError(f"{_MISSING}: {chosen!r} is neither fail nor skip")
    config.stash[_REPORT] = []


@pytest.fixture(scope="session")
def throwaway_postgres(request: pytest.FixtureRequest) -> Iterator[StartServer]:
    """Starts servers, as in ``throwaway_postgres("18")``, each of which lasts until the session ends.

    Whoever asks for the same in the same run gets the same server, in any worker of pytest-xdist.
    """
    from conformance.throwaway import NotAvailableError, blocking_postgres

    # pytest-xdist's name of the run. Not from the environment, which a run inside this one would inherit.
    run = getattr(request.config, "workerinput", {}).get("testrunuid") or secrets.token_hex()
    with contextlib.ExitStack() as servers:

        def start(preferred: str | None = None, *, settings: Mapping[str, str] | None = None) -> ThrowawayServer:
            try:
                server = servers.enter_context(blocking_postgres(preferred, settings=settings, shared_as=run))
            except NotAvailableError as error:
                if request.config.getini(_MISSING) == "skip":
                    pytest.skip(str(error))
                pytest.fail(str(error), pytrace=False)
            _report(request.config, server)
            return server

        yield start


@pytest.fixture(scope="session")
def postgres_server(throwaway_postgres: StartServer) -> ThrowawayServer:
    """The run's throwaway server. CONFORMANCE_POSTGRES_RUNG chooses which, as in ``embedded-18``."""
    return throwaway_postgres()


@pytest.fixture(scope="session")
def postgres_template() -> str | None:
    """The database of `postgres_server` that `postgres_dsn` copies; nobody may be connected to it. None: empty."""
    return None


@pytest.fixture
def postgres_dsn(postgres_server: ThrowawayServer, postgres_template: str | None) -> Iterator[str]:
    """The DSN of a clean database, which is dropped after the test whatever is still connected to it."""
    with postgres_server.database(postgres_template) as dsn:
        yield dsn


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[_REPORT]
    if lines:
        terminalreporter.section("throwaway Postgres")
        for line in dict.fromkeys(lines):
            terminalreporter.line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """pytest-xdist: what a worker has to report is the controller's to show."""
    del error
    node.config.stash[_REPORT].extend(getattr(node, "workeroutput", {}).get(_WORKER_REPORT, []))


def _report(config: pytest.Config, server: ThrowawayServer) -> None:
    reasons = "".join(f"\n  not {reason}" for reason in server.reasons)
    config.stash[_REPORT].append(f"{server.rung}, PostgreSQL {server.version}{reasons}")
    # pytest-xdist gives each worker's configuration this attribute and sends its content to the controller.
    worker_output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if worker_output is not None:
        worker_output[_WORKER_REPORT] = config.stash[_REPORT]
