"""The migrations, in order."""

from __future__ import annotations

from typing import Final

from workflow_adapters.postgres.schema.job_queue import JOB_QUEUE
from workflow_adapters.postgres.schema.migration import Migration
from workflow_adapters.postgres.schema.operations import OPERATIONS
from workflow_adapters.postgres.schema.outbox import OUTBOX
from workflow_adapters.postgres.schema.reference import REFERENCE

MIGRATIONS: Final[tuple[Migration, ...]] = (REFERENCE, JOB_QUEUE, OUTBOX, OPERATIONS)

CURRENT_VERSION: Final = MIGRATIONS[-1].version
