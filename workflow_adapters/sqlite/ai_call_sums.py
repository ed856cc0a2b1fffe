"""Sums of calls on a connection that has no function of ours: the rows are added up here, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from workflow_adapters.exact_decimals import add_exactly
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.statement import Operation, Row, Statement

_PAGE: Final = 1000
"""The LIMIT of the statement."""


class _ModelSums:
    def __init__(self) -> None:
        self.calls = self.input_tokens = self.output_tokens = 0
        self.cost = Decimal(0)

    def add(self, row: Row) -> None:
        self.calls += 1
        self.input_tokens += int(row[2] or 0)
        self.output_tokens += int(row[3] or 0)
        self.cost = add_exactly(self.cost, float(row[4] or 0))


def sum_in_pages(where: Conditions) -> Operation[Sequence[Row]]:
    """What `SqliteDialect.sum_ai_calls` answers."""
    models: dict[str, _ModelSums] = {}
    last_row = -1
    while True:
        rows = yield Statement(
            f"""
            SELECT rowid, "modelKey", "inputTokens", "outputTokens", cost
            FROM @ai_calls
            WHERE rowid > {where.next_placeholder}{where.text}
            ORDER BY rowid
            LIMIT 1000
            """,
            (*where.args, last_row),
        )
        for row in rows:
            last_row = int(row[0] or 0)
            models.setdefault(str(row[1]), _ModelSums()).add(row)
        if len(rows) < _PAGE:
            break
    return [
        (model, sums.calls, sums.input_tokens, sums.output_tokens, str(sums.cost))
        for model, sums in sorted(models.items())
    ]
