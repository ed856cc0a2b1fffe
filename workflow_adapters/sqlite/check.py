"""What a database lacks of the schema that this release works on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Final, TypeAlias, cast

from workflow_adapters.errors import SchemaError
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sqlite.schema import MIGRATIONS, NEWEST
from workflow_adapters.sqlite.schema.migration import refuse_newer

_MIGRATE: Final = "run `await adapters.migrate()`"

_Part: TypeAlias = tuple[str, str, str]
"""(kind, table, name) of something in a schema."""

_PARTS: Final = """
    SELECT type, tbl_name, name
    FROM sqlite_schema
    UNION ALL
    SELECT 'column', made.tbl_name, part.name
    FROM sqlite_schema AS made
    JOIN pragma_table_xinfo(made.tbl_name) AS part
    WHERE made.type = 'table'
"""


def require_current_schema() -> Operation[None]:
    """SchemaError unless migrate() has brought the database as far as this release goes."""
    rows = yield Statement("SELECT max(version) FROM wa_schema_version")
    if int(rows[0][0] or 0) < NEWEST:
        raise SchemaError([f"the schema is at version {rows[0][0]} of {NEWEST}"], _MIGRATE)


def check_schema() -> Operation[None]:
    """SchemaError naming each missing table, column, index and trigger, or a schema that is too new."""
    yield from refuse_newer(NEWEST)
    rows = yield Statement(_PARTS)
    missing = list(_missing(frozenset(cast("Sequence[_Part]", rows))))
    if missing:
        raise SchemaError(missing, _MIGRATE)


def _missing(actual: frozenset[_Part]) -> Iterator[str]:
    tables = {table for kind, table, _ in actual if kind == "table"}
    for kind, table, name in sorted(expected_parts() - actual):
        if kind == "table":
            yield f"table {table}"
        elif table in tables:
            yield f"column {table}.{name}" if kind == "column" else f"{kind} {name}"


@lru_cache(maxsize=1)
def expected_parts() -> frozenset[_Part]:
    """What the migrations make. Making it, in memory, takes milliseconds: the first call belongs into a thread."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in MIGRATIONS:
            for statement in migration.statements:
                connection.execute(statement)
        return frozenset(connection.execute(_PARTS).fetchall())
