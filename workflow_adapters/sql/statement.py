"""Operations on a database that do no I/O of their own.

A statement's text is written once for both databases, in SQL with a few marks (`workflow_adapters.sql.render`):

- ``$1``, ``$2`` … are its arguments; every value is bound. One argument may stand in several places.
- ``@workflow_runs`` is a table of ours (Postgres puts the quoted schema in front of it), ``@Status`` the enum.
- ``@run.columns`` is the explicit column list of a record, in the form that `RecordMapping.read` takes;
  ``@run.columns(r)`` the same of a table's alias (`workflow_adapters.sql.tables` has the names). ``@ms(expression)``
  reads a single instant that way.
- What only Postgres needs is left out for SQLite: a ``::type`` cast (there every value goes over as text, a number or a
  list of those), ``COLLATE "C"`` (SQLite orders bytewise), and a row lock such as ``FOR KEY SHARE`` or
  ``FOR UPDATE SKIP LOCKED`` (a write transaction on SQLite holds the whole file).
- ``= ANY($1::text[])``, ``= ANY($1::text[]::@Status[])`` and ``<> ALL($1::text[])`` compare with a list; for SQLite
  they become ``IN`` and ``NOT IN`` over ``json_each``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString, TypeAlias, TypeVar

T = TypeVar("T")

Argument: TypeAlias = (
    "int | float | str | datetime | Sequence[str | None] | Sequence[int] | Sequence[float | None] | None"
)
"""What a statement may bind. An instant goes as a datetime in UTC (cast ``::text::timestamp``), JSON as its text (cast
``::text::jsonb``), a status as its value (cast ``::text::@Status``), a list as an array (JSON text on SQLite)."""

Row: TypeAlias = "Sequence[int | float | str | None]"
"""Columns in the order of the statement: instants as milliseconds since the epoch, JSON and enums as text."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement and its arguments."""

    text: LiteralString
    args: tuple[Argument, ...] = ()


Operation: TypeAlias = Generator[Statement, Sequence[Row], T]
"""Yields statements, is sent the rows of each, returns the answer. It may raise errors of ours between statements.

A statement without RETURNING has no rows; every write that needs to know what it changed returns something.
"""
