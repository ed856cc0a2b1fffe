"""Expectations: what holds passes and counts, what does not ends the clause with both sides in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NoReturn

import pytest

from conformance.expectations import Expectation, Raises
from conformance.outcome import ClauseFailedError, Failure
from conformance.wording import Wording
from workflow_adapters.errors import NotFoundError, StaleVersionError
from workflow_adapters.records.status import Status

START = datetime(2026, 1, 1, tzinfo=UTC)


class Ledger:
    def __init__(self) -> None:
        self.wording = Wording(START)
        self.counted = 0

    def count(self) -> None:
        self.counted += 1

    def fail(self, contradiction: str, *, expected: str, observed: str) -> NoReturn:
        raise ClauseFailedError(Failure(expected=expected, observed=observed, contradiction=contradiction))


def expect(observed: Any, because: str | None = None) -> Expectation[Any]:
    return Expectation(Ledger(), "it", observed, because)


HELD: list[Callable[[], Any]] = [
    lambda: expect(1).equals(1),
    lambda: expect({"a": [1, "x"]}).equals({"a": [1, "x"]}),
    lambda: expect(1).differs_from(2),
    lambda: expect(1).differs_from(True),
    lambda: expect(None).is_none(),
    lambda: expect(0).is_not_none(),
    lambda: expect(2).is_greater_than(1),
    lambda: expect(2).is_at_least(2),
    lambda: expect(2).is_at_most(2),
    lambda: expect(2).is_one_of(1, 2),
    lambda: expect([1]).contains(1),
    lambda: expect([1]).lacks(2),
    lambda: expect("LOST: x").starts_with("LOST"),
    lambda: expect([1, 2]).has_length(2),
    lambda: expect([]).is_empty(),
    lambda: expect(1).is_a(int),
    lambda: expect(4).satisfies("an even number", lambda value: value % 2 == 0),
    lambda: expect(START).equals(START.astimezone(timezone(timedelta(hours=2)))),
]

NOT_HELD: list[tuple[Callable[[], Any], str]] = [
    (lambda: expect(1).equals(2), "it is 1, but must be 2."),
    (lambda: expect(1).equals(True), "it is 1, but must be True."),
    (lambda: expect(1).equals(1.0), "it is 1, but must be 1.0."),
    (lambda: expect({"a": [1]}).equals({"a": [True]}), "it is {'a': [1]}, but must be {'a': [True]}."),
    (lambda: expect((1,)).equals([1]), "it is (1), but must be [1]."),
    (lambda: expect("COMPLETED").equals(Status.COMPLETED), "it is 'COMPLETED', but must be COMPLETED."),
    (lambda: expect(1).differs_from(1), "it is 1, but must be anything but 1."),
    (lambda: expect(0).is_none(), "it is 0, but must be None."),
    (lambda: expect(None).is_not_none(), "it is None, but must be a value."),
    (lambda: expect(1).is_true(), "it is 1, but must be True."),
    (lambda: expect(0).is_false(), "it is 0, but must be False."),
    (lambda: expect(1).is_greater_than(1), "it is 1, but must be more than 1."),
    (lambda: expect(1).is_at_least(2), "it is 1, but must be at least 2."),
    (lambda: expect(3).is_at_most(2), "it is 3, but must be at most 2."),
    (lambda: expect(3).is_one_of(1, 2), "it is 3, but must be one of (1, 2)."),
    (lambda: expect([1]).contains(2), "it is [1], but must be something that contains 2."),
    (lambda: expect([1]).lacks(1), "it is [1], but must be something without 1."),
    (lambda: expect("x").starts_with("y"), "it is 'x', but must be a text that begins with 'y'."),
    (lambda: expect([1]).has_length(2), "it is [1], but must be 2 items."),
    (lambda: expect([1]).is_empty(), "it is [1], but must be nothing in it."),
    (lambda: expect(1).is_a(str), "it is 1, but must be a str."),
    (
        lambda: expect(3).satisfies("an even number", lambda value: value % 2 == 0),
        "it is 3, but must be an even number.",
    ),
    (lambda: expect(1, "One is not two.").equals(2), "One is not two."),
]


@pytest.mark.parametrize("check", HELD)
def test_what_holds_passes(check: Callable[[], Any]) -> None:
    check()


@pytest.mark.parametrize(("check", "said"), NOT_HELD)
def test_what_does_not_hold_says_both_sides(check: Callable[[], Any], said: str) -> None:
    with pytest.raises(ClauseFailedError) as caught:
        check()
    assert caught.value.failure.contradiction == said
    assert caught.value.failure.observed.startswith("it: ")


def test_every_expectation_counts_whether_it_holds_or_not() -> None:
    ledger = Ledger()
    Expectation(ledger, "it", 1, None).equals(1)
    with pytest.raises(ClauseFailedError):
        Expectation(ledger, "it", 1, None).equals(2)
    with Raises(ledger, ValueError, "the call", {}):
        raise ValueError
    assert ledger.counted == 3


def raises(kind: type[BaseException], **attributes: object) -> Raises[Any]:
    return Raises(Ledger(), kind, "the call", attributes)


def test_the_expected_error_with_its_attributes_passes_and_is_given_back() -> None:
    with raises(StaleVersionError, expected=1, actual=2) as caught:
        raise StaleVersionError("run", "r", 1, 2)
    assert caught.error.id == "r"


def give(error: Exception | None) -> None:
    if error is not None:
        raise error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "the call must raise NotFoundError(id='r'); it gave no error."),
        (KeyError("r"), "the call must raise NotFoundError(id='r'); it gave KeyError('r')."),
        (NotFoundError("run", "s"), "the call must raise NotFoundError(id='r'); it gave NotFoundError(id='s')."),
    ],
)
def test_no_error_or_another_one_is_told(error: Exception | None, said: str) -> None:
    with pytest.raises(ClauseFailedError) as caught, raises(NotFoundError, id="r"):
        give(error)
    assert caught.value.failure.contradiction == said


def test_a_verdict_inside_the_block_is_not_taken_for_the_adapters_error() -> None:
    with pytest.raises(ClauseFailedError, match="it is 1"), raises(Exception):
        expect(1).equals(2)
