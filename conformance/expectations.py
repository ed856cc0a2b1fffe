"""What clauses say about answers: each expectation counts, and the first one not met ends the clause.

```python
ctx.expect("status of the job", job.status).equals(Status.COMPLETED)
job = ctx.expect("the claim", await ctx.adapter.dequeue()).is_not_none()
with ctx.raises(StaleVersionError, "update_run with an old version", expected=1, actual=2):
    await ctx.adapter.update_run(...)
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from types import NoneType, TracebackType
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, cast

from conformance.outcome import ClauseFailedError, ClauseSkippedError, HarnessError
from conformance.wording import Wording, counted, with_article

V = TypeVar("V")
N = TypeVar("N")
E = TypeVar("E", bound=BaseException)

_PASSED_ON: Final = (ClauseFailedError, ClauseSkippedError, HarnessError)


class Ledger(Protocol):
    """Where expectations are counted and failures end the clause."""

    @property
    def wording(self) -> Wording: ...

    def count(self) -> None: ...

    def fail(self, contradiction: str, *, expected: str, observed: str) -> NoReturn: ...


class Expectation(Generic[V]):
    """An observed value, named in the port's words by `subject`, about to be compared."""

    def __init__(self, ledger: Ledger, subject: str, observed: V, because: str | None) -> None:
        self._ledger = ledger
        self._subject = subject
        self._observed = observed
        self._because = because

    def equals(self, expected: object) -> None:
        """The same value of the same type: 1 is not True, and 1.0 is not 1."""
        self._hold(_same(self._observed, expected), self._ledger.wording.show(expected))

    def differs_from(self, other: object) -> None:
        self._hold(not _same(self._observed, other), f"anything but {self._ledger.wording.show(other)}")

    def is_none(self) -> None:
        self._hold(self._observed is None, "None")

    def is_not_none(self: Expectation[N | None]) -> N:
        """Give the value back, narrowed."""
        self._hold(self._observed is not None, "a value")
        return cast("N", self._observed)

    def is_true(self) -> None:
        self._hold(self._observed is True, "True")

    def is_false(self) -> None:
        self._hold(self._observed is False, "False")

    def is_greater_than(self, limit: Any) -> None:
        """Strictly; an instant is "greater" when it is later."""
        self._hold(cast("Any", self._observed) > limit, f"more than {self._ledger.wording.show(limit)}")

    def is_at_least(self, limit: Any) -> None:
        self._hold(cast("Any", self._observed) >= limit, f"at least {self._ledger.wording.show(limit)}")

    def is_at_most(self, limit: Any) -> None:
        self._hold(cast("Any", self._observed) <= limit, f"at most {self._ledger.wording.show(limit)}")

    def is_one_of(self, *allowed: object) -> None:
        self._hold(
            any(_same(self._observed, value) for value in allowed), f"one of {self._ledger.wording.show(allowed)}"
        )

    def contains(self, item: object) -> None:
        self._hold(item in cast("Any", self._observed), f"something that contains {self._ledger.wording.show(item)}")

    def lacks(self, item: object) -> None:
        self._hold(item not in cast("Any", self._observed), f"something without {self._ledger.wording.show(item)}")

    def starts_with(self, prefix: str) -> None:
        observed = self._observed
        self._hold(isinstance(observed, str) and observed.startswith(prefix), f"a text that begins with {prefix!r}")

    def has_length(self, length: int) -> V:
        """Give the collection back: what follows may index it."""
        self._hold(len(cast("Collection[object]", self._observed)) == length, counted(length, "item"))
        return self._observed

    def is_empty(self) -> None:
        self._hold(not len(cast("Collection[object]", self._observed)), "nothing in it")

    def is_a(self, kind: type[N]) -> N:
        """Give the value back as a `kind`."""
        self._hold(isinstance(self._observed, kind), with_article(kind.__name__))
        return cast("N", self._observed)

    def satisfies(self, expected: str, holds: Callable[[V], bool]) -> None:
        """`expected` says in words what `holds` computes."""
        self._hold(holds(self._observed), expected)

    def _hold(self, held: bool, expected: str) -> None:
        self._ledger.count()
        if not held:
            observed = self._ledger.wording.show(self._observed)
            said = self._because or f"{self._subject} is {observed}, but must be {expected}."
            self._ledger.fail(said, expected=f"{self._subject}: {expected}", observed=f"{self._subject}: {observed}")


class Raises(Generic[E]):
    """Context manager: the block must raise `kind`, with the given attributes; `error` is what it raised."""

    error: E

    def __init__(self, ledger: Ledger, kind: type[E], subject: str, attributes: dict[str, object]) -> None:
        self._ledger = ledger
        self._kind = kind
        self._subject = subject
        self._attributes = attributes

    def __enter__(self) -> Raises[E]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, _PASSED_ON) or not isinstance(error, (Exception, self._kind, NoneType)):
            return False
        self._ledger.count()
        show = self._ledger.wording.show
        wanted = ", ".join(f"{name}={show(value)}" for name, value in self._attributes.items())
        expected = f"{self._kind.__name__}({wanted})"
        if not isinstance(error, self._kind):
            self._refuse(expected, "no error" if error is None else show(error))
        given = {name: getattr(error, name, None) for name in self._attributes}
        if given != self._attributes:
            told = ", ".join(f"{name}={show(value)}" for name, value in given.items())
            self._refuse(expected, f"{type(error).__name__}({told})")
        self.error = error
        return True

    def _refuse(self, expected: str, observed: str) -> NoReturn:
        self._ledger.fail(
            f"{self._subject} must raise {expected}; it gave {observed}.",
            expected=f"{self._subject} raises {expected}",
            observed=observed,
        )


def _same(observed: object, expected: object) -> bool:
    if type(observed) is not type(expected) and not (isinstance(observed, datetime) and isinstance(expected, datetime)):
        return False
    if isinstance(observed, dict) and isinstance(expected, dict):
        left, right = cast("dict[object, object]", observed), cast("dict[object, object]", expected)
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(observed, list | tuple) and isinstance(expected, list | tuple):
        ours, theirs = cast("list[object]", observed), cast("list[object]", expected)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return observed == expected
