"""One Postgres for all the processes of a run, held by one that forks none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from conformance.throwaway import blocking_postgres

# Processes with one value of it share one server; pytest-xdist sets it for its own.
_RUN: Final = "PYTEST_XDIST_TESTRUNUID"
_HELD: Final = "MUTANTS_POSTGRES_HELD"


def needs_postgres(backend: str) -> bool:
    return backend.startswith("postgres")


def is_held() -> bool:
    return _HELD in os.environ


def run_beside_postgres(module: str, arguments: Sequence[str]) -> int:
    """Run the module in a process of its own while a server is there, and return its exit code."""
    run = os.environ.get(_RUN) or uuid4().hex
    with blocking_postgres(shared_as=run):
        environment = os.environ | {_RUN: run, _HELD: "1"}
        return subprocess.run([sys.executable, "-m", module, *arguments], env=environment, check=False).returncode
