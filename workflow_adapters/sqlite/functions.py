"""SQL functions of ours. They are on our own connections only: a caller's connection stays as it is."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any, Final

from workflow_adapters.exact_decimals import add_exactly

EXACT_SUM: Final = "wa_exact_sum"


class ExactSum:
    """Aggregate: the text of the exact decimal sum of the doubles' shortest forms, where SQLite's sum() would round."""

    def __init__(self) -> None:
        self._total = Decimal(0)

    def step(self, value: float) -> None:
        self._total = add_exactly(self._total, value)

    def finalize(self) -> str:
        return str(self._total)


def register_functions(connection: sqlite3.Connection) -> None:
    """Give a connection of ours the functions that `SqliteDialect(own_functions=True)` uses."""
    aggregate: Any = ExactSum  # the stub knows no aggregate that gives text
    connection.create_aggregate(EXACT_SUM, 1, aggregate)
