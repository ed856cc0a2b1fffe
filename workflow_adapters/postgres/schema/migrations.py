"""The migrations, in order."""

from __future__ import annotations

from typing import Final

from workflow_adapters.postgres.schema.migration import Migration
from workflow_adapters.postgres.schema.reference import REFERENCE

MIGRATIONS: Final[tuple[Migration, ...]] = (REFERENCE,)

CURRENT_VERSION: Final = MIGRATIONS[-1].version
