"""Which event loop runs the caller."""

from __future__ import annotations

import asyncio
from typing import Any


def current_asyncio_task() -> asyncio.Task[Any] | None:
    """The running task, or None on another event loop than asyncio's."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
