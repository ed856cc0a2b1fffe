"""What a migration is. The texts use the marks of `workflow_adapters.sql.statement` for tables and the enum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index, which may be built while the table is in use.

    `on` is what follows ON: ``@job_queue (priority DESC, "createdAt", id) WHERE …``. The name of one that the reference
    does not have begins with ``wa_``.
    """

    name: LiteralString
    on: LiteralString
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step forward. Released ones never change.

    `statements` run in one transaction together with the note that the step was taken. `indexes` are built after the
    statements of all steps, so a statement must not need one; `migrate()` also builds those that are missing, and those
    that an interrupted build left invalid. Nothing that the reference has is ever changed or dropped, and no column.
    """

    version: int
    name: str
    statements: tuple[LiteralString, ...] = ()
    indexes: tuple[Index, ...] = ()
