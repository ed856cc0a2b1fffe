"""Bringing a database file to the current schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import dedent
from typing import LiteralString

from workflow_adapters.errors import SchemaError
from workflow_adapters.sql.statement import Operation, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step forward. Released ones never change, and none drops a column or a table of the reference."""

    version: int
    tables: tuple[str, ...] = ()
    """What it makes that must not be there before."""
    statements: tuple[LiteralString, ...]


def migrate(migrations: tuple[Migration, ...], now: datetime) -> Operation[list[str]]:
    """Take the steps that the database has not taken yet, and return their statements.

    For one write transaction, so that each step is taken once.
    """
    yield Statement(
        """
        CREATE TABLE IF NOT EXISTS wa_schema_version (
            version INTEGER PRIMARY KEY,
            "appliedAt" INTEGER NOT NULL
        ) STRICT
        """
    )
    pending = yield from _pending(migrations)
    for migration in pending:
        for statement in migration.statements:
            yield Statement(statement)
        yield Statement(
            """
            INSERT INTO wa_schema_version (version, "appliedAt")
            VALUES ($1, $2)
            """,
            (migration.version, now),
        )
    return _statements(pending)


def plan(migrations: tuple[Migration, ...]) -> Operation[list[str]]:
    """The statements that `migrate` would run now. Reads only."""
    marked = yield from _is_marked()
    if marked:
        return _statements((yield from _pending(migrations)))
    yield from _refuse_strangers(migrations[0].tables)
    return _statements(migrations)


def _pending(migrations: tuple[Migration, ...]) -> Operation[list[Migration]]:
    rows = yield Statement("SELECT max(version) FROM wa_schema_version")
    version = int(rows[0][0] or 0)
    _refuse_newer(version, migrations[-1].version)
    if version == 0:
        yield from _refuse_strangers(migrations[0].tables)
    return [migration for migration in migrations if migration.version > version]


def _statements(migrations: Sequence[Migration]) -> list[str]:
    return [dedent(statement).strip() for migration in migrations for statement in migration.statements]


def refuse_newer(newest: int) -> Operation[None]:
    """SchemaError when a newer release has migrated this database: it may mean things that this one does not know."""
    if (yield from _is_marked()):
        rows = yield Statement("SELECT max(version) FROM wa_schema_version")
        _refuse_newer(int(rows[0][0] or 0), newest)


def _is_marked() -> Operation[bool]:
    rows = yield Statement(
        """
        SELECT 1
        FROM sqlite_schema
        WHERE type = 'table' AND name = 'wa_schema_version'
        """
    )
    return bool(rows)


def _refuse_newer(version: int, newest: int) -> None:
    if version > newest:
        raise SchemaError(
            [f"the schema is at version {version} and this release knows up to {newest}"],
            "upgrade workflow-adapters",
        )


def _refuse_strangers(tables: tuple[str, ...]) -> Operation[None]:
    rows = yield Statement(
        """
        SELECT name
        FROM sqlite_schema
        WHERE type = 'table' AND name IN (SELECT value FROM json_each($1))
        ORDER BY name
        """,
        (tables,),
    )
    if rows:
        raise SchemaError(
            [f"table {name} is there already and was not made by migrate()" for (name,) in rows],
            "give the adapters a database file of their own, or rename these tables",
        )
