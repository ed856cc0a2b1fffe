"""From the one notation to the SQL of a database: mechanical, and cached per statement.

The notation is described in `workflow_adapters.sql.statement`; a database's `Style` fills in what is its own.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from workflow_adapters.sql.columns import Column, Kind
from workflow_adapters.sql.statement import Argument
from workflow_adapters.sql.tables import MAPPINGS

# Patches make a text for each set of fields that is ever written together, so the number of texts is not quite fixed.
_CACHED_STATEMENTS: Final = 1024

_INSTANT: Final = re.compile(r"@ms\((?P<expression>(?:[^()]|\([^()]*\))*)\)")
_MARK: Final = re.compile(r"@(?P<name>\w+)(?P<columns>\.columns(?:\((?P<alias>\w+)\))?)?")


@dataclass(frozen=True, slots=True)
class Rendered:
    """SQL for the driver. `order` has the positions of the statement's arguments in the driver's order."""

    text: str
    order: tuple[int, ...] | None = None


class Style(ABC):
    """How one database writes the notation. An instance keeps what it has rendered."""

    def __init__(self, absent: frozenset[str] = frozenset()) -> None:
        """`absent` names columns (``table.column``) that this database does not have: its lists select a stand-in."""
        self._absent = absent
        self.render = lru_cache(maxsize=_CACHED_STATEMENTS)(self._render)

    def bind(self, rendered: Rendered, args: Sequence[Argument]) -> tuple[Any, ...]:
        """The arguments as the driver takes them, in the driver's order."""
        encoded = [self.argument(value) for value in args]
        return tuple(encoded if rendered.order is None else [encoded[position] for position in rendered.order])

    @abstractmethod
    def table(self, name: str) -> str:
        """A table of ours, quoted and with its schema."""

    @abstractmethod
    def status_type(self) -> str:
        """The enum's type, quoted and with its schema."""

    @abstractmethod
    def selected(self, kind: Kind, expression: str) -> str:
        """The expression that reads a value of that kind in the form of a `Row`."""

    @abstractmethod
    def argument(self, value: Argument) -> Any:
        """One argument as the driver takes it."""

    @abstractmethod
    def finished(self, text: str) -> Rendered:
        """Write placeholders, casts, lists and locks, once names are filled in."""

    def _render(self, text: str) -> Rendered:
        instants = _INSTANT.sub(lambda mark: self.selected(Kind.INSTANT, mark["expression"]), text)
        return self.finished(_MARK.sub(self._name, instants))

    def _name(self, mark: re.Match[str]) -> str:
        name = mark["name"]
        if mark["columns"]:
            mapping = MAPPINGS[name]
            return ", ".join(self._column(mapping.table, column, mark["alias"]) for column in mapping.columns)
        return self.status_type() if name == "Status" else self.table(name)

    def _column(self, table: str, column: Column, alias: str | None) -> str:
        if f"{table}.{column.name}" in self._absent:
            return column.absent or "NULL"
        return self.selected(column.type.kind, f"{alias}.{column.quoted}" if alias else column.quoted)
