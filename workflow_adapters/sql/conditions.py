"""The WHERE of a listing with optional filters; and literal prefixes."""

from __future__ import annotations

from typing import Any, Final, LiteralString

from workflow_adapters.page_cursor import decode_cursor
from workflow_adapters.sql.columns import Column
from workflow_adapters.sql.mapping import placeholder
from workflow_adapters.sql.statement import Argument
from workflow_adapters.unset import UNSET, Unset

_FIRST_SURROGATE: Final = 0xD800
_AFTER_SURROGATES: Final = 0xE000
_LAST_CODE_POINT: Final = 0x10FFFF


class Conditions:
    """Conditions of a listing, each preceded by AND, and their arguments, numbered from `first`."""

    def __init__(self, first: int) -> None:
        self.text: LiteralString = ""
        self.args: list[Argument] = []
        self._first = first

    def compare(self, column: Column, operator: LiteralString, value: Any) -> None:
        """Add ``column operator value``, unless the value is UNSET; None compares as "is null"."""
        if value is UNSET:
            return
        if value is None:
            self.text += f" AND {column.quoted} IS NULL"
            return
        self.text += f" AND {column.quoted} {operator} {self.next_placeholder}{column.type.cast}"
        self.args.append(value)

    def listed_after(self, column: Column, listing: str, cursor: str | None) -> None:
        """Add what comes after the cursor in a listing by this instant and id, both descending."""
        if cursor is None:
            return
        at, last_id = decode_cursor(listing, cursor)
        first, second = self.next_placeholder, placeholder(self._first + len(self.args) + 1)
        # The first comparison is implied; with it an index on the instant alone serves too.
        self.text += (
            f" AND {column.quoted} <= {first}{column.type.cast}"
            f' AND ({column.quoted}, id COLLATE "C") < ({first}{column.type.cast}, {second}::text)'
        )
        self.args += [at, last_id]

    @property
    def next_placeholder(self) -> LiteralString:
        """The number of the argument that follows those of the conditions."""
        return placeholder(self._first + len(self.args))

    def starts_with(self, column: Column, prefix: str | None | Unset) -> None:
        """Add a literal, case-sensitive prefix, as a range that an index in bytewise order serves."""
        if not isinstance(prefix, str):
            return
        self.compare(column, 'COLLATE "C" >=', prefix or UNSET)
        self.compare(column, 'COLLATE "C" <', after_prefix(prefix))


def after_prefix(prefix: str) -> str | Unset:
    """The least text, bytewise, after every text that starts with `prefix`; UNSET when there is none."""
    head = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not head:
        return UNSET
    following = ord(head[-1]) + 1
    # Surrogates are no characters of a stored text; in UTF-8 what follows U+D7FF is U+E000.
    return head[:-1] + chr(_AFTER_SURROGATES if following == _FIRST_SURROGATE else following)
