"""The WorkflowPersistence on SQLite."""

from __future__ import annotations

from typing import Self

from workflow_adapters.sql.database import Database
from workflow_adapters.sql.persistence import SqlWorkflowPersistence
from workflow_adapters.sqlite.outbox import SqliteOutbox


class SqliteWorkflowPersistence(SqliteOutbox, SqlWorkflowPersistence):
    def _on(self, database: Database) -> Self:
        return type(self)(database, self._rotation)
