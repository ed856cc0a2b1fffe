"""Columns: their stored names, and how a value of each kind is bound and read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, LiteralString, cast

from workflow_adapters.json_values import JsonValue, dumps, loads
from workflow_adapters.records.status import ArtifactType, LogLevel, Status, StepKind, StepStatus

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Kind(Enum):
    """How a column is stored. Of the enumerations only the status of runs, stages and jobs is one in the database."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    INSTANT = "instant"
    JSON = "json"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A kind, the cast that follows a placeholder for it, and how a stored value becomes the record's."""

    kind: Kind
    cast: LiteralString
    decode: Callable[[Any], Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. `attribute` is the record's name for it, `name` the stored one."""

    attribute: str
    name: str
    type: ColumnType
    required: bool
    absent: LiteralString | None

    @property
    def quoted(self) -> LiteralString:
        # The names of our own columns are the only identifiers of a statement that are not written out in it.
        return cast(LiteralString, self.name if self.name.islower() else f'"{self.name}"')

    def encode(self, value: Any) -> Any:
        """A field's value as a statement's argument."""
        if self.type.kind is Kind.JSON:
            return json_argument(value, required=self.required)
        return value


def stored_name(attribute: str) -> str:
    """``workflow_run_id`` -> ``workflowRunId``."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), attribute)


def instant_to_ms(instant: datetime) -> int:
    """Whole milliseconds since the epoch, rounded down."""
    return (instant - _EPOCH) // _MILLISECOND


def ms_to_instant(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def json_argument(value: JsonValue, *, required: bool = False) -> str | None:
    """A JSON value as its text. None is SQL NULL, or JSON null where the column is `required`."""
    if value is None and not required:
        return None
    return dumps(value)


def column_type(annotation: str) -> ColumnType:
    """The type of the column behind a record's field, by the field's annotation."""
    return _TYPES[annotation.removesuffix(" | None")]


_TYPES: Final[dict[str, ColumnType]] = {
    "str": ColumnType(Kind.TEXT, "", None),
    "int": ColumnType(Kind.INT, "", None),
    # SQLite hands a real that was written as an integer literal back as an integer.
    "float": ColumnType(Kind.FLOAT, "", float),
    "datetime": ColumnType(Kind.INSTANT, "::text::timestamp", ms_to_instant),
    "JsonValue": ColumnType(Kind.JSON, "::text::jsonb", loads),
    "JsonObject": ColumnType(Kind.JSON, "::text::jsonb", loads),
    "Status": ColumnType(Kind.STATUS, "::text::@Status", Status),
    **{enum.__name__: ColumnType(Kind.TEXT, "", enum) for enum in (ArtifactType, LogLevel, StepKind, StepStatus)},
}
