"""An append-only file that all processes write to: what really ran, told apart from what the database says."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Journal:
    """Lines are written whole (O_APPEND), so several processes can share the file."""

    path: Path
    who: str

    def note(self, what: str, **fields: Any) -> None:
        line = json.dumps({"at": time.time(), "who": self.who, "what": what, **fields}) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def find(self, what: str) -> list[dict[str, Any]]:
        return [entry for entry in self.read() if entry["what"] == what]
