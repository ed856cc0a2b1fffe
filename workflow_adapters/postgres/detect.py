"""What the schema has, read from the catalogue: a read that finds nothing where there is nothing, and never fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from workflow_adapters.errors import SchemaError
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.options import quoted
from workflow_adapters.postgres.schema.migrations import CURRENT_VERSION
from workflow_adapters.records.status import Status
from workflow_adapters.sql.database import SchemaFacts
from workflow_adapters.sql.tables import AI_CALL, RUN

VERSION_TABLE: Final = "wa_migrations"
TABLES: Final = (
    "workflow_runs",
    "workflow_stages",
    "workflow_steps",
    "workflow_logs",
    "workflow_artifacts",
    "workflow_annotations",
    "job_queue",
    "outbox_events",
    "idempotency_keys",
    "ai_calls",
)
"""Without any of these nothing works. workflow_definitions may be missing: versioning is unsupported then."""

DEFINITIONS_TABLE: Final = "workflow_definitions"
OPTIONAL_COLUMNS: Final = frozenset(
    f"{mapping.table}.{column.name}" for mapping in (RUN, AI_CALL) for column in mapping.columns if column.absent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresFacts(SchemaFacts):
    """The same for Postgres, with what only a schema of ours has."""

    owned: bool = True
    """Whether migrate() made this schema, so that our own indexes, columns, tables and functions are there. On a schema
    that the TypeScript engine's tooling made, statements do without."""

    absent: frozenset[str] = frozenset()
    """Columns (``table.column``) that an older database lacks."""


class Catalogue(NamedTuple):
    """What is there of what the adapters know of."""

    tables: frozenset[str]
    columns: frozenset[str]
    labels: frozenset[str]
    version: int | None
    """The newest migration that ran; None where the schema was not made by migrate()."""
    encoding: str
    """The server's name for that of the database."""


async def read_catalogue(connection: Connection, schema: str, status_enum: str, limit: float | None) -> Catalogue:
    """Look, without relying on a table to be there."""
    rows = await connection.fetch(
        """
        SELECT 'table', c.relname::text
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1::text::name AND c.relname = ANY($3::text[]::name[]) AND c.relkind IN ('r', 'p')
        UNION ALL
        SELECT 'column', c.relname::text || '.' || a.attname::text
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE n.nspname = $1::text::name AND c.relname = ANY($3::text[]::name[]) AND c.relkind IN ('r', 'p')
        UNION ALL
        SELECT 'label', e.enumlabel::text
        FROM pg_catalog.pg_type t
        JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
        JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid
        WHERE n.nspname = $1::text::name AND t.typname = $2::text::name
        UNION ALL
        SELECT 'encoding', pg_catalog.getdatabaseencoding()::text
        """,
        schema,
        status_enum,
        [*TABLES, DEFINITIONS_TABLE, VERSION_TABLE],
        timeout=limit,
    )
    found = {kind: frozenset(name for its_kind, name in rows if its_kind == kind) for kind in _KINDS}
    version = None
    if VERSION_TABLE in found["table"]:
        versions = await connection.fetch(
            f"SELECT coalesce(max(version), 0) FROM {quoted(schema)}.{VERSION_TABLE}", timeout=limit
        )
        version = int(versions[0][0])
    return Catalogue(found["table"] - {VERSION_TABLE}, found["column"], found["label"], version, *found["encoding"])


_KINDS: Final = ("table", "column", "label", "encoding")


def refuse_encoding(catalogue: Catalogue) -> None:
    """SchemaError where the database has another encoding than our texts and the lengths that are reckoned with.

    There a failure could not be recorded for a character in its message, and a job whose workflow has an é in its name
    would not be found by who serves it. SQL_ASCII takes bytes as they are.
    """
    if catalogue.encoding not in {"UTF8", "SQL_ASCII"}:
        raise SchemaError(
            [f"the encoding UTF8, which the database has as {catalogue.encoding}"],
            "make a database WITH ENCODING 'UTF8' TEMPLATE template0",
        )


def refuse_newer(version: int | None) -> None:
    """SchemaError when a newer release has migrated this schema: it may mean things that this one does not know."""
    if version is not None and version > CURRENT_VERSION:
        raise SchemaError(
            [f"the schema is at version {version}, this code knows {CURRENT_VERSION}"],
            "install the version of workflow_adapters that made this schema, or a newer one",
        )


def facts_of(catalogue: Catalogue) -> PostgresFacts:
    """What follows for the statements. SchemaError where the adapters can not work here."""
    refuse_encoding(catalogue)
    refuse_newer(catalogue.version)
    if catalogue.version is not None and catalogue.version < CURRENT_VERSION:
        raise SchemaError(
            [f"the schema is at version {catalogue.version} of {CURRENT_VERSION}"], "run `await adapters.migrate()`"
        )
    missing = [f"table {name}" for name in TABLES if name not in catalogue.tables]
    missing += [f"{status} of the enum" for status in Status if status not in catalogue.labels]
    if missing:
        nothing = not catalogue.tables and not catalogue.labels
        raise SchemaError(
            missing,
            "run `await adapters.migrate()`" if nothing else "run `await adapters.check_schema()` for all and the mend",
        )
    absent = OPTIONAL_COLUMNS - catalogue.columns
    versions = DEFINITIONS_TABLE in catalogue.tables and not any(name.startswith(f"{RUN.table}.") for name in absent)
    costs = not any(name.startswith(f"{AI_CALL.table}.") for name in absent)
    return PostgresFacts(
        definition_versions=versions, call_costs=costs, owned=catalogue.version is not None, absent=_all_or_none(absent)
    )


def _all_or_none(absent: frozenset[str]) -> frozenset[str]:
    """A capability that is there in part is not used at all."""
    tables = {name.partition(".")[0] for name in absent}
    return frozenset(name for name in OPTIONAL_COLUMNS if name.partition(".")[0] in tables)
