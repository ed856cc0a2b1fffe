"""Values in the port's words, short enough to read: what failures and timelines are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, cast

# UUIDs, ULIDs, cuids, and counters that are padded so that they sort as text.
_GENERATED: Final = re.compile(
    r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26}|c[0-9a-z]{24}|0[0-9]{9,}"
)
_LONGEST_TEXT: Final = 120
_MOST_ITEMS: Final = 4
_RELATIVE: Final = timedelta(days=2)


class Wording:
    """Renders the values of one clause: opaque ids by short names, instants as offsets from its start."""

    def __init__(self, origin: datetime) -> None:
        self._origin = origin
        self._names: dict[str, str] = {}

    def name(self, id: str, short: str) -> None:
        """Show `id` as `short` from now on."""
        self._names.setdefault(id, short)

    def show(self, value: object) -> str:
        match value:
            case Enum():
                shown = str(value.name)
            case str():
                shown = self._text(value)
            case datetime():
                shown = self._instant(value)
            case timedelta():
                shown = f"{value.total_seconds():g} s"
            case Mapping():
                shown = self._mapping(cast("Mapping[object, object]", value))
            case tuple() | list() | set() | frozenset():
                shown = self._items(cast("Sequence[object] | AbstractSet[object]", value))
            case BaseException():
                shown = f"{type(value).__name__}({self._renamed(str(value))})"
            case _ if is_dataclass(value) and not isinstance(value, type):
                shown = self._record(value)
            case _:
                shown = _cut(repr(value))
        return shown

    def _renamed(self, text: str) -> str:
        for id, short in self._names.items():  # noqa: A001 - what the names stand for
            text = text.replace(id, short)
        return text

    def _text(self, value: str) -> str:
        if value in self._names:
            return self._names[value]
        if _GENERATED.fullmatch(value):
            self._names[value] = f"#{sum(name.startswith('#') for name in self._names.values()) + 1}"
            return self._names[value]
        return _cut(repr(value))

    def _instant(self, value: datetime) -> str:
        if value.utcoffset() is None:
            return f"{value.isoformat()} (naive)"
        offset = value - self._origin
        if abs(offset) > _RELATIVE:
            return value.isoformat(timespec="milliseconds")
        zone = "" if value.utcoffset() == timedelta(0) else f" ({value.tzname()})"
        return f"T{offset.total_seconds():+.3f}s{zone}"

    def _mapping(self, value: Mapping[object, object]) -> str:
        shown = [f"{self.show(key)}: {self.show(item)}" for key, item in list(value.items())[:_MOST_ITEMS]]
        return f"{{{', '.join(shown)}{_rest(len(value))}}}"

    def _items(self, value: Sequence[object] | AbstractSet[object]) -> str:
        shown = [self.show(item) for item in list(value)[:_MOST_ITEMS]]
        first, last = ("(", ")") if isinstance(value, tuple) else ("[", "]")
        return f"{first}{', '.join(shown)}{_rest(len(value))}{last}"

    def _record(self, value: Any) -> str:
        given = [(item.name, getattr(value, item.name)) for item in fields(value) if not _is_default(item, value)]
        told = [f"{name}={self.show(part)}" for name, part in given if part is not None]
        return f"{type(value).__name__}({', '.join(told)})"


def _is_default(item: Field[Any], value: object) -> bool:
    default: object = item.default_factory() if item.default_factory is not MISSING else item.default
    return getattr(value, item.name) == default


def _rest(length: int) -> str:
    return f", … {length - _MOST_ITEMS} more" if length > _MOST_ITEMS else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"


def counted(count: int, noun: str) -> str:
    """``1 clause``, ``2 clauses``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def with_article(noun: str) -> str:
    """``a queue``, ``an object``."""
    is_vowel = noun[:1].lower() in "aeio" or noun.startswith("Un")
    return f"{'an' if is_vowel else 'a'} {noun}"
