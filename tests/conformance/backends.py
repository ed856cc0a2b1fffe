"""The built-in adapters as the harness takes them: four ports on each backend.

python -m conformance run tests.conformance.backends:all_specs
"""

from __future__ import annotations

from typing import Final

from conformance.clause import Parameters, Port
from tests.conformance.bundles import specs_of
from tests.conformance.memory_backend import open_on_memory
from tests.conformance.postgres_backend import open_on_postgres
from tests.conformance.sqlite_backend import open_on_sqlite


def _in_memory(_: Port) -> Parameters:
    return Parameters(clock="caller", durability="process", writers="one")


def _on_sqlite(_: Port) -> Parameters:
    return Parameters(clock="caller", durability="crash", writers="one")


def _on_postgres(port: Port) -> Parameters:
    # The queue alone has the database's clock; all other stamps are the caller's.
    clock = "database" if port is Port.JOB_QUEUE else "caller"
    return Parameters(clock=clock, durability="crash", writers="many")


memory: Final = specs_of("memory", open_on_memory, _in_memory, side_by_side=True)
sqlite: Final = specs_of("sqlite", open_on_sqlite, _on_sqlite, side_by_side=True)
postgres: Final = specs_of("postgres", open_on_postgres, _on_postgres, needs_postgres=True, side_by_side=True)

all_specs: Final = [*memory, *sqlite, *postgres]
