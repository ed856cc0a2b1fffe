"""Operations on a database that do no I/O of their own.

A statement's text is written once for both databases:

- ``$1``, ``$2`` … are its arguments; every value is bound.
- ``@workflow_runs`` is a table of ours (Postgres puts the quoted schema in front of it), ``@Status`` the enum.
- ``@run.columns`` is the explicit column list of a record, in the form the codec reads (see `mapping`).
- a ``::type`` cast is for Postgres, where every value goes over as text or a number; SQLite's rendering leaves it out.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString, TypeAlias, TypeVar

T = TypeVar("T")

Argument: TypeAlias = "int | float | str | datetime | Sequence[str] | Sequence[int] | None"
"""What a statement may bind. JSON goes as its text, an enum as its value, a list as an array (JSON text on SQLite)."""

Row: TypeAlias = "Sequence[int | float | str | None]"
"""Columns in the order of the statement: timestamps as milliseconds since the epoch, JSON and enums as text."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement and its arguments."""

    text: LiteralString
    args: tuple[Argument, ...] = ()


Operation: TypeAlias = Generator[Statement, Sequence[Row], T]
"""Yields statements, is sent the rows of each, returns the answer. It may raise errors of ours between statements."""
