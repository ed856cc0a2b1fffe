"""The Postgres adapters keep the contract on every major version that is supported: quick runs, a database for each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.outcome import ExitCode, Outcome
from conformance.report import Report
from conformance.runner import run_sync
from conformance.throwaway import ThrowawayServer
from tests.conformance.backends import postgres
from tests.postgres.conftest import nothing_is_left
from tests.throwaway.support import server_or_skip

# Limits of time are judged where the server is alone; here it shares the machine with all other tests.
PATIENCE = 4
# All other tests of Postgres have 16 under them.
RUNGS = {15: "local-15", 18: "embedded-18"}


@pytest.fixture(scope="module", params=RUNGS)
def server(request: pytest.FixtureRequest) -> Iterator[ThrowawayServer]:
    with server_or_skip(RUNGS[request.param], shared_as=os.environ.get("PYTEST_XDIST_TESTRUNUID")) as server:
        assert server.version.startswith(f"{request.param}.")
        yield server


@pytest.mark.parametrize("spec", postgres, ids=[spec.port.slug for spec in postgres])
def test_the_clauses_are_met(server: ThrowawayServer, spec: Spec) -> None:
    with server.database() as dsn:
        report = run_sync(replace(spec, needs_postgres=False), Choice(profile="quick", dsn=dsn, time_scale=PATIENCE))
        asyncio.run(nothing_is_left(dsn))
    assert report.exit_code is ExitCode.CONFORMANT, told(report)
    assert report.counts[Outcome.PASS] > 10


def told(report: Report) -> str:
    failures = [f"{result.clause_id}: {result.failure.contradiction}" for result in report.results if result.failure]
    return "\n".join([report.verdict, *failures])
