"""What there is to do to a schema, as SQL. The same plan is shown and run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workflow_adapters.postgres.check import FoundIndex, every_index, missing_indexes
from workflow_adapters.postgres.detect import VERSION_TABLE, Catalogue
from workflow_adapters.postgres.options import quoted
from workflow_adapters.postgres.schema.migration import Index, Migration
from workflow_adapters.postgres.schema.migrations import MIGRATIONS

_VERSIONS: Final = f"""
CREATE TABLE @{VERSION_TABLE} (
    version integer PRIMARY KEY,
    name text NOT NULL,
    "appliedAt" timestamp(3) NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """Statements that are run in one transaction, or else each for itself, outside of any."""

    statements: tuple[str, ...]
    in_transaction: bool


class Planner:
    """Plans for one schema. `render` turns the marks of a statement into names."""

    def __init__(self, schema: str, render: Callable[[str], str]) -> None:
        self._schema = schema
        self._render = render

    def steps(self, catalogue: Catalogue, indexes: dict[str, FoundIndex], *, schema_exists: bool) -> list[Step]:
        """All that is to do, in order; nothing where the schema is current."""
        if catalogue.version is None:
            return [self._everything(schema_exists=schema_exists)]
        version = catalogue.version
        ahead = [migration for migration in MIGRATIONS if migration.version > version]
        steps = [Step(tuple(map(self._render, self._taken(migration))), in_transaction=True) for migration in ahead]
        for index, _ in missing_indexes(indexes, catalogue):
            if index.name in indexes:
                drop = f"DROP INDEX CONCURRENTLY {quoted(self._schema)}.{quoted(index.name)}"
                steps.append(Step((drop,), in_transaction=False))
            steps.append(Step((self._create(index, "CONCURRENTLY "),), in_transaction=False))
        return steps

    def _everything(self, *, schema_exists: bool) -> Step:
        # The tables are new and nobody uses them yet, so that all can be done at once, or not at all.
        texts = [] if schema_exists else [f"CREATE SCHEMA {quoted(self._schema)}"]
        texts.append(self._render(_VERSIONS))
        texts += [self._render(text) for migration in MIGRATIONS for text in self._taken(migration)]
        texts += [self._create(index) for index in every_index()]
        return Step(tuple(texts), in_transaction=True)

    def _taken(self, migration: Migration) -> list[str]:
        """A migration's statements, and the note that they ran."""
        name = migration.name.replace("'", "''")
        note = f"""
        INSERT INTO @{VERSION_TABLE} (version, name, "appliedAt")
        VALUES ({migration.version}, '{name}', date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC'))
        """
        return [*migration.statements, note]

    def _create(self, index: Index, how: str = "") -> str:
        kind = "UNIQUE INDEX" if index.unique else "INDEX"
        return self._render(f"CREATE {kind} {how}{quoted(index.name)} ON {index.on}")
