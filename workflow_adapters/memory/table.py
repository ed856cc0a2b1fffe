"""A table: rows under their key, with ordered indexes. Rows are immutable, so a row can stand in two tables at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

R = TypeVar("R")

Place: TypeAlias = tuple[Any, ...]
"""Where a row stands in an index: its order and, in the last place, its key."""


class Index(Generic[R]):
    """The rows of each bucket in order, then by key. A row whose bucket is None is left out."""

    def __init__(self, rows: Mapping[Any, R], bucket: Callable[[R], Hashable], order: Callable[[R], Place]) -> None:
        self._rows = rows
        self._bucket = bucket
        self._order = order
        self._places: dict[Hashable, list[Place]] = {}

    def __getitem__(self, bucket: Hashable) -> list[R]:
        """The rows of a bucket, in order."""
        return list(self.iterate(bucket))

    def iterate(self, bucket: Hashable) -> Iterator[R]:
        """The same without a copy: whoever writes to the table must stop iterating first."""
        for place in self._places.get(bucket, ()):
            yield self._rows[place[-1]]

    def descend(self, bucket: Hashable, before: Place | None) -> Iterator[R]:
        """The rows of a bucket from the last to the first, or from `before`, an order and a key, which is left out."""
        places = self._places.get(bucket, [])
        end = len(places) if before is None else bisect_left(places, before)
        for position in range(end - 1, -1, -1):
            yield self._rows[places[position][-1]]

    def first(self, bucket: Hashable) -> R | None:
        """The first row of a bucket, or None."""
        return next(self.iterate(bucket), None)

    def last(self, bucket: Hashable) -> R | None:
        """The last row of a bucket, or None."""
        return next(self.descend(bucket, None), None)

    def count(self, bucket: Hashable) -> int:
        return len(self._places.get(bucket, ()))

    def buckets(self) -> list[Any]:
        """The buckets that hold rows."""
        return list(self._places)

    def move(self, key: Any, before: R | None, after: R | None) -> None:
        """The row under `key` was `before` and is `after`; None for no row."""
        old = None if before is None else (self._bucket(before), (*self._order(before), key))
        new = None if after is None else (self._bucket(after), (*self._order(after), key))
        if old == new:
            return
        if old is not None and old[0] is not None:
            bucket, place = old
            places = self._places[bucket]
            del places[bisect_left(places, place)]
            if not places:
                del self._places[bucket]
        if new is not None and new[0] is not None:
            bucket, place = new
            insort(self._places.setdefault(bucket, []), place)


class UniqueIndex(Generic[R]):
    """The one row of each bucket. A row whose bucket is None is left out."""

    def __init__(self, rows: Mapping[Any, R], bucket: Callable[[R], Hashable]) -> None:
        self._rows = rows
        self._bucket = bucket
        self._keys: dict[Hashable, Any] = {}

    def get(self, bucket: Hashable) -> R | None:
        """The row, or None."""
        key = self._keys.get(bucket)
        return None if key is None else self._rows[key]

    def move(self, key: Any, before: R | None, after: R | None) -> None:
        """The row under `key` was `before` and is `after`; None for no row."""
        old = None if before is None else self._bucket(before)
        new = None if after is None else self._bucket(after)
        # In a commit the new row of a bucket may come before the old one goes.
        if old is not None and old != new and self._keys.get(old) == key:
            del self._keys[old]
        if new is not None:
            self._keys[new] = key


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
        self._rows: dict[Any, R] = {}
        self._indexes: list[Index[R] | UniqueIndex[R]] = []

    def index(self, bucket: Callable[[R], Hashable], order: Callable[[R], Place] = lambda _: ()) -> Index[R]:
        """Add an index, before the first row."""
        index = Index(self._rows, bucket, order)
        self._indexes.append(index)
        return index

    def unique_index(self, bucket: Callable[[R], Hashable]) -> UniqueIndex[R]:
        """Add an index of buckets that hold one row each, before the first row."""
        index = UniqueIndex(self._rows, bucket)
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
            index.move(key, before, row)
        if row is None:
            del self._rows[key]
        else:
            self._rows[key] = row
