"""What the tests of throwaway servers share: servers where there are any, and what is left of them afterwards."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.throwaway import NotAvailableError, ThrowawayServer, blocking_postgres
from conformance.throwaway.accounts import temporary_directories
from conformance.throwaway.docker_engine import SERVER_LABEL, docker_client
from conformance.throwaway.processes import Process, processes_on

PATIENCE_SECONDS = 30


def run_id(server: ThrowawayServer) -> str:
    return server.dsn.rpartition("throwaway_")[2].partition("_")[0]


def _bases() -> set[Path]:
    return {*temporary_directories(), Path(os.environ.get("TMPDIR", "/tmp"))}


def run_directories(id: str) -> list[Path]:
    return [path for base in _bases() for path in base.glob(f"workflow-adapters-run-*-{id}*")]


def run_processes(id: str) -> list[Process]:
    name = f"workflow-adapters-run-{os.geteuid()}-{id}"
    return [process for base in _bases() for process in processes_on(base / name / "data")]


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_gone(id: str, rung: str) -> bool:
    if run_directories(id) or run_processes(id):
        return False
    if not rung.startswith("testcontainers"):
        return True
    with docker_client() as client:
        return client.containers.list(all=True, filters={"label": f"{SERVER_LABEL}={id}"}) == []


@contextlib.contextmanager
def server_or_skip(rung: str, **options: Any) -> Generator[ThrowawayServer]:
    """Only what a machine may well lack is skipped; the embedded servers come with the tests' own requirements."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(blocking_postgres(rung, **options))
        except NotAvailableError as error:
            if rung.startswith("embedded"):
                raise
            pytest.skip(str(error))
        yield server


@dataclass(frozen=True)
class Holder:
    """A program that holds a server."""

    process: subprocess.Popen[str]
    id: str
    dsn: str
    rung: str
