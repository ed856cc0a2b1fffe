"""Namespaces, directories and databases for one adapter under trial."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from conformance.backend import Spec
from conformance.scratch import Scratch
from conformance.servers import postgres_server
from workflow_adapters.clock import ManualClock


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is: all that is the same for every adapter on it."""

    namespace: str
    directory: Path
    dsn: str | None
    seed: int
    clock: ManualClock


class Places:
    """One place at a time; what was made for them is gone at `close`."""

    def __init__(self, spec: Spec, seed: int, dsn: str | None) -> None:
        self.server: str | None = None
        """The Postgres that databases are made on, in words."""
        self._spec = spec
        self._seed = seed
        self._given_dsn = dsn
        self._databases: list[str] = []
        self._clock = ManualClock()
        self._scratch: Scratch | None = None
        self._token = secrets.token_hex(4)
        self._count = 0
        self._place: Place | None = None

    @property
    def root(self) -> Path:
        """The directory of all places."""
        if self._scratch is None:
            self._scratch = Scratch()
        return self._scratch.path

    def place(self) -> Place:
        """The present place, made where there is none."""
        if self._place is None:
            self._count += 1
            name = f"conformance_{self._token}_{self._count}"
            directory = self.root / name
            directory.mkdir()
            self._place = Place(name, directory, self._dsn(), self._seed, self._clock)
        return self._place

    def leave(self) -> None:
        """The next place is another one."""
        self._place = None

    def close(self) -> None:
        self.leave()
        while self._databases:
            postgres_server().drop_database(self._databases.pop())
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def _dsn(self) -> str | None:
        if not self._spec.needs_postgres:
            return self._given_dsn
        server = postgres_server()
        self.server = f"PostgreSQL {server.version} ({server.rung})"
        self._databases.append(server.create_database())
        return self._databases[-1]
