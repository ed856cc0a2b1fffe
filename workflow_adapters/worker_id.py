"""The worker id that claims are stamped with."""

from __future__ import annotations

import os
import socket

from workflow_adapters.ids import new_id
from workflow_adapters.validation import key


class WorkerId:
    """A configured id stays; without one the host's is adopted, and until then there is a generated one."""

    def __init__(self, configured: str | None = None) -> None:
        self._configured = configured is not None
        self.value = key("worker_id", configured) if configured is not None else _generated()

    def adopt(self, worker_id: str) -> str:
        """Take the host's id unless one was configured; return the id in use."""
        checked = key("worker_id", worker_id)
        if not self._configured:
            self.value = checked
        return self.value


def _generated() -> str:
    return f"{socket.gethostname()[:200]}-{os.getpid()}-{new_id()[-12:]}"
