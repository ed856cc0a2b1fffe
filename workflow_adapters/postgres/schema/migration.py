"""What a migration is. The texts use the marks of `workflow_adapters.sql.statement` for tables and the enum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index, which may be built while the table is in use.

    `on` is what follows ON: ``@job_queue (priority DESC, "createdAt", id) WHERE …``. The name of one of our own begins
    with ``wa_``, for only those are ever dropped (to be rebuilt, after a build that did not come to its end).
    """

    name: LiteralString
    on: LiteralString
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step forward. Released ones never change.

    `statements` run in one transaction together with the note that the step was taken. `indexes` are built after the
    statements of all steps, so a statement must not need one; `migrate()` also makes those that are missing or were
    left invalid. Nothing is dropped that the reference has, and no column at all.
    """

    version: int
    name: str
    statements: tuple[LiteralString, ...] = ()
    indexes: tuple[Index, ...] = ()
