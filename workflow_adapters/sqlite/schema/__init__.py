"""The schema that `migrate()` makes: the reference's tables in STRICT form, as numbered migrations."""

from __future__ import annotations

from typing import Final

from workflow_adapters.sqlite.schema.indexes import INDEXES
from workflow_adapters.sqlite.schema.migration import Migration
from workflow_adapters.sqlite.schema.tables import TABLES

MIGRATIONS: Final = (Migration(version=1, tables=tuple(TABLES), statements=(*TABLES.values(), *INDEXES)),)
NEWEST: Final = MIGRATIONS[-1].version
