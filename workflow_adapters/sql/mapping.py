"""Names <-> columns: rows become records here, and patches become SET lists. No method converts a value by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Generic, LiteralString, TypeVar, cast

from workflow_adapters.errors import BackendError
from workflow_adapters.sql.columns import Column, column_type, stored_name
from workflow_adapters.sql.statement import Argument, Row
from workflow_adapters.unset import UNSET

R = TypeVar("R")

_NOT_STORED: Final = "expected_version"
_NOTHING: Final[dict[str, Any]] = {}


class RecordMapping(Generic[R]):
    """The columns of one record type, in the order of its fields; ``@name.columns`` selects them in that order.

    A column's name is the camelCase of the field's, mechanically, and its kind is that of the field's annotation.
    """

    def __init__(
        self,
        table: str,
        record: type[R],
        *,
        build: Callable[..., R] | None = None,
        computed: Collection[str] = (),
        renamed: Mapping[str, str] = _NOTHING,
        required_json: Collection[str] = (),
        absent: Mapping[str, LiteralString] = _NOTHING,
    ) -> None:
        """`computed` fields have no column: `build` makes them. `absent` says what to select where an older database
        lacks a column, `required_json` which JSON columns can not hold SQL NULL.
        """
        self.table = table
        self.columns: Final = tuple(
            Column(
                attribute=field.name,
                name=renamed.get(field.name) or stored_name(field.name),
                type=column_type(str(field.type)),
                required=field.name in required_json,
                absent=absent.get(field.name),
            )
            for field in fields(cast(Any, record))
            if field.name not in computed
        )
        self._build: Callable[..., R] = build or record
        self._by_attribute: Final = {column.attribute: column for column in self.columns}
        self._decoders: Final = tuple((column.attribute, column.type.decode) for column in self.columns)

    def __getitem__(self, attribute: str) -> Column:
        return self._by_attribute[attribute]

    def read(self, row: Row) -> R:
        """The record of a row of ``@name.columns``. SQL NULL and JSON null both read as None.

        BackendError for a foreign row with a value that no record has.
        """
        try:
            values: dict[str, Any] = {
                attribute: stored if stored is None or decode is None else decode(stored)
                for (attribute, decode), stored in zip(self._decoders, row, strict=True)
            }
        except (BackendError, ValueError, OverflowError) as error:
            raise BackendError(f"a row of {self.table} can not be read, that of {row[0]!r}: {error}") from error
        return self._build(**values)


@dataclass(frozen=True, slots=True)
class SetList:
    """Assignments, each preceded by a comma, and their arguments."""

    text: LiteralString
    args: tuple[Argument, ...]


def set_list(mapping: RecordMapping[Any], patch: Any, *, first: int, absent: Collection[str] = ()) -> SetList:
    """Turn the fields that a patch holds into assignments, numbering their arguments from `first`.

    UNSET leaves a column alone, any other value is written. Fields named in `absent`, which this database has no
    column for, are left out.
    """
    text: LiteralString = ""
    args: list[Argument] = []
    for field in fields(patch):
        value = getattr(patch, field.name)
        if value is UNSET or field.name == _NOT_STORED or field.name in absent:
            continue
        column = mapping[field.name]
        text += f", {column.quoted} = {placeholder(first + len(args))}{column.type.cast}"
        args.append(column.encode(value))
    return SetList(text, tuple(args))


def placeholder(number: int) -> LiteralString:
    """``$n``, for a statement whose arguments are counted while it is put together."""
    return cast(LiteralString, f"${number:d}")
