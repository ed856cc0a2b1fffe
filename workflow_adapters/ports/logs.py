"""Contract of workflow_logs."""

from __future__ import annotations

from typing import Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.validation import instance


class Logs(Protocol):
    """Log lines of runs and stages; read back through the operations."""

    @checked(log=instance(CreateLogInput))
    async def create_log(self, log: CreateLogInput) -> None:
        """Store a log line. An unknown run or stage: NotFoundError."""
        ...
