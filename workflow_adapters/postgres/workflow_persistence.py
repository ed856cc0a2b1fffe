"""The WorkflowPersistence on Postgres."""

from __future__ import annotations

from typing import Self

from workflow_adapters.postgres.outbox import PostgresOutbox
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.persistence import SqlWorkflowPersistence


class PostgresWorkflowPersistence(PostgresOutbox, SqlWorkflowPersistence):
    """All of it on one database or transaction; `rotation` is what those of one bundle share."""

    def __init__(self, database: Database, rotation: OutboxRotation) -> None:
        super().__init__(database)
        self._rotation = rotation

    def _on(self, database: Database) -> Self:
        return type(self)(database, self._rotation)
