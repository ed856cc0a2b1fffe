"""What a schema must have, and what of it is missing."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from workflow_adapters.errors import SchemaError
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.detect import (
    DEFINITIONS_TABLE,
    OPTIONAL_COLUMNS,
    TABLES,
    Catalogue,
    read_catalogue,
    refuse_encoding,
    refuse_newer,
)
from workflow_adapters.postgres.schema.migration import Index
from workflow_adapters.postgres.schema.migrations import CURRENT_VERSION, MIGRATIONS
from workflow_adapters.postgres.schema.reference import REFERENCE
from workflow_adapters.records.status import Status
from workflow_adapters.sql.tables import AI_CALL, MAPPINGS, RUN

COLUMNS: Final = frozenset(
    {f"{mapping.table}.{column.name}" for mapping in MAPPINGS.values() for column in mapping.columns}
    | {f"{table}.{name}" for table in TABLES for name in ("id", "createdAt")}
    | {f"idempotency_keys.{name}" for name in ("key", "commandType", "result")}
)

OURS: Final = "run `await adapters.migrate()`"
THEIRS: Final = (
    "bring the schema up to date with the tooling that made it (migrate() leaves it alone), or name another one with"
    " the option `schema`"
)

_MADE: Final = re.compile(r"CREATE (?:OR REPLACE )?(TABLE|FUNCTION) @(wa_\w+)")


class FoundIndex(NamedTuple):
    """An index of the schema; one that is not valid is left from a build that did not come to its end."""

    name: str
    table: str
    unique: bool
    valid: bool
    columns: tuple[str, ...]


async def check_schema(connection: Connection, schema: str, status_enum: str, limit: float) -> None:
    """Raise SchemaError naming all that is missing, and the mend."""
    catalogue = await read_catalogue(connection, schema, status_enum, limit)
    version = catalogue.version
    owned = version is not None
    refuse_encoding(catalogue)
    refuse_newer(version)
    indexes = await read_indexes(connection, schema, limit)
    missing = _missing_parts(catalogue, owned=owned)
    missing += [f"index {index.name}{said}" for index, said in missing_indexes(indexes, catalogue)]
    if owned:
        there = await _read_own(connection, schema, limit)
        missing += [f"{kind.lower()} {name}" for kind, name in _own_parts() if name not in there]
        if version < CURRENT_VERSION:
            missing.insert(0, f"the schema is at version {version} of {CURRENT_VERSION}")
    if missing:
        raise SchemaError(missing, THEIRS if not owned and catalogue.tables else OURS)


async def read_indexes(connection: Connection, schema: str, limit: float) -> dict[str, FoundIndex]:
    """The indexes of the schema's tables, by name."""
    rows = await connection.fetch(
        """
        SELECT i.relname::text, t.relname::text, x.indisunique, x.indisvalid AND x.indisready,
               ARRAY(
                   SELECT coalesce(a.attname::text, '')
                   FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (attnum, position)
                   LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
                   WHERE k.position <= x.indnkeyatts
                   ORDER BY k.position
               )
        FROM pg_catalog.pg_index x
        JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
        JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
        WHERE n.nspname = $1::text::name
        """,
        schema,
        timeout=limit,
    )
    found = (FoundIndex(name, table, unique, valid, tuple(columns)) for name, table, unique, valid, columns in rows)
    return {index.name: index for index in found}


def missing_indexes(found: dict[str, FoundIndex], catalogue: Catalogue) -> list[tuple[Index, str]]:
    """Indexes that are not there or not valid, with what to say of them. One of the reference may have another name."""
    usable = {(index.table, index.columns, index.unique) for index in found.values() if index.valid}
    missing: list[tuple[Index, str]] = []
    for index in every_index() if catalogue.version is not None else REFERENCE.indexes:
        table, columns = _table_and_columns(index)
        lacks_columns = any(f"{table}.{name}" in OPTIONAL_COLUMNS - catalogue.columns for name in columns)
        if table not in catalogue.tables or lacks_columns:
            continue
        there = found.get(index.name)
        if there is None and not (index in REFERENCE.indexes and (table, columns, index.unique) in usable):
            missing.append((index, ""))
        elif there is not None and not there.valid:
            missing.append((index, " (left invalid by an interrupted build)"))
    return missing


def every_index() -> tuple[Index, ...]:
    """The indexes of all migrations."""
    return tuple(index for migration in MIGRATIONS for index in migration.indexes)


def _missing_parts(catalogue: Catalogue, *, owned: bool) -> list[str]:
    missing = [f"table {name}" for name in TABLES if name not in catalogue.tables]
    wanted = COLUMNS
    if not owned:
        wanted -= _without_a_capability(catalogue)
    elif DEFINITIONS_TABLE not in catalogue.tables:
        missing.append(f"table {DEFINITIONS_TABLE}")
    present = {name for name in wanted if name.partition(".")[0] in catalogue.tables}
    missing += [f"column {name}" for name in sorted(present - catalogue.columns)]
    return missing + [f"enum value {status.value}" for status in Status if status.value not in catalogue.labels]


def _without_a_capability(catalogue: Catalogue) -> frozenset[str]:
    """Columns that may be missing together: those of a capability that an older database does not have at all."""
    spared: set[str] = set()
    for mapping in (RUN, AI_CALL):
        columns = {name for name in OPTIONAL_COLUMNS if name.startswith(f"{mapping.table}.")}
        if not columns & catalogue.columns:
            spared |= columns
    return frozenset(spared)


def _own_parts() -> list[tuple[str, str]]:
    texts = "\n".join(statement for migration in MIGRATIONS for statement in migration.statements)
    return _MADE.findall(texts)


async def _read_own(connection: Connection, schema: str, limit: float) -> set[str]:
    rows = await connection.fetch(
        """
        SELECT c.relname::text
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1::text::name AND starts_with(c.relname::text, 'wa_')
        UNION ALL
        SELECT p.proname::text
        FROM pg_catalog.pg_proc p
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = $1::text::name AND starts_with(p.proname::text, 'wa_')
        """,
        schema,
        timeout=limit,
    )
    return {row[0] for row in rows}


def _table_and_columns(index: Index) -> tuple[str, tuple[str, ...]]:
    """The columns only of a plain list of columns, which all of the reference's are."""
    table, _, rest = index.on.removeprefix("@").partition(" ")
    listed = rest.partition("(")[2].partition(")")[0].split(", ")
    return table, tuple(name.removesuffix(" DESC").strip('"') for name in listed)
