"""The statements that differ from database to database, each as a whole."""

from __future__ import annotations

from typing import Protocol


class Dialect(Protocol):
    """Whole statements, written for one database each, where one text can not serve both."""
