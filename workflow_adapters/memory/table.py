"""A table: rows under their key, with ordered indexes. Rows are immutable, so a row can stand in two tables at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

R = TypeVar("R")

OrderKey: TypeAlias = tuple[Any, ...]


class Index(Generic[R]):
    """The rows of each bucket in order. A row whose bucket is None is left out."""

    def __init__(self, bucket: Callable[[R], Hashable], order: Callable[[R], OrderKey]) -> None:
        self._bucket = bucket
        self._order = order
        self._entries: dict[Hashable, list[tuple[OrderKey, R]]] = {}

    def __getitem__(self, bucket: Hashable) -> list[R]:
        """The rows of a bucket, in order."""
        return [row for _, row in self._entries.get(bucket, ())]

    def iterate(self, bucket: Hashable) -> Iterator[R]:
        """The same without a copy: whoever writes to the table must stop iterating first."""
        for _, row in self._entries.get(bucket, ()):
            yield row

    def first(self, bucket: Hashable) -> R | None:
        """The first row of a bucket, or None."""
        return next(self.iterate(bucket), None)

    def last(self, bucket: Hashable) -> R | None:
        """The last row of a bucket, or None."""
        entries = self._entries.get(bucket)
        return entries[-1][1] if entries else None

    def count(self, bucket: Hashable) -> int:
        return len(self._entries.get(bucket, ()))

    def buckets(self) -> list[Any]:
        """The buckets that hold rows."""
        return list(self._entries)

    def replace(self, before: R | None, after: R | None) -> None:
        if before is not None:
            self._remove(before)
        if after is not None:
            self._add(after)

    def _add(self, row: R) -> None:
        bucket = self._bucket(row)
        if bucket is not None:
            insort(self._entries.setdefault(bucket, []), (self._order(row), row), key=_order_key)

    def _remove(self, row: R) -> None:
        bucket = self._bucket(row)
        if bucket is None:
            return
        entries = self._entries[bucket]
        position = bisect_left(entries, self._order(row), key=_order_key)
        while entries[position][1] is not row:
            position += 1
        del entries[position]
        if not entries:
            del self._entries[bucket]


def _order_key(entry: tuple[OrderKey, Any]) -> OrderKey:
    return entry[0]


@dataclass(frozen=True, slots=True)
class Change:
    """What stood under a key of a table before a write; None for nothing."""

    table: Table[Any]
    key: Hashable
    before: Any


class Table(Generic[R]):
    """Rows by key, in the order they were first put. Writes are noted in `journal`, so that they can be undone."""

    def __init__(self, name: str, key: Callable[[R], Hashable], journal: list[Change] | None) -> None:
        self.name = name
        self._key = key
        self._journal = journal
        self._rows: dict[Hashable, R] = {}
        self._indexes: list[Index[R]] = []

    def index(self, bucket: Callable[[R], Hashable], order: Callable[[R], OrderKey] = lambda _: ()) -> Index[R]:
        """Add an index, before the first row."""
        index = Index(bucket, order)
        self._indexes.append(index)
        return index

    def get(self, key: Hashable) -> R | None:
        return self._rows.get(key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[R]:
        """Every row. Whoever writes must stop iterating first."""
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: R) -> R:
        """Insert the row, or replace the one with its key."""
        self.restore(self._key(row), row, self._journal)
        return row

    def remove(self, row: R) -> None:
        self.restore(self._key(row), None, self._journal)

    def restore(self, key: Hashable, row: R | None, journal: list[Change] | None = None) -> None:
        """Make `row` (None for nothing) stand under the key."""
        before = self._rows.get(key)
        if before is row:
            return
        if journal is not None:
            journal.append(Change(self, key, before))
        for index in self._indexes:
            index.replace(before, row)
        if row is None:
            del self._rows[key]
        else:
            self._rows[key] = row
