"""Postgres's rendering of the notation."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any

from workflow_adapters.sql.columns import Kind
from workflow_adapters.sql.render import Rendered, Style
from workflow_adapters.sql.statement import Argument


class PostgresStyle(Style):
    """Names with their schema, casts as written. Needs no codec: values go over and come back as text and numbers."""

    def __init__(self, schema: str, status_enum: str, absent: frozenset[str] = frozenset()) -> None:
        """`schema` and `status_enum` are plain identifiers, checked by whoever took them from a user."""
        super().__init__(absent)
        self._schema = schema
        self._status_enum = status_enum

    def table(self, name: str) -> str:
        return f'"{self._schema}"."{name}"'

    def status_type(self) -> str:
        return f'"{self._schema}"."{self._status_enum}"'

    def selected(self, kind: Kind, expression: str) -> str:
        match kind:
            case Kind.INSTANT:
                return f"(extract(epoch FROM {expression}) * 1000)::bigint"
            case Kind.JSON | Kind.STATUS:
                return f"{expression}::text"
            case _:
                return expression

    def argument(self, value: Argument) -> Any:
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, datetime):
            return instant_text(value)
        return value

    def finished(self, text: str) -> Rendered:
        return Rendered(text)


def instant_text(instant: datetime) -> str:
    """An instant as the text of a timestamp without time zone that holds UTC."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
