"""What an operation makes of rows that change between its statements, played by hand."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from workflow_adapters.errors import BackendBusyError, NotFoundError, StaleVersionError
from workflow_adapters.sql.results import ATTEMPTS, insert_under_parents, versioned_update
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.unset import UNSET

T = TypeVar("T")

UPDATE = Statement("UPDATE …")
VERSION = Statement("SELECT version …")
INSERT = Statement("INSERT …")

NOTHING: Sequence[Row] = []
WRITTEN: Sequence[Row] = [["x"]]


def play(operation: Operation[T], answers: Sequence[Sequence[Row]]) -> tuple[list[str], T]:
    """Answer an operation's statements in turn; gives back their first words and its answer."""
    asked: list[str] = []
    turns = iter(answers)
    try:
        statement = next(operation)
        while True:
            asked.append(statement.text.split()[0])
            statement = operation.send(next(turns))
    except StopIteration as end:
        assert list(turns) == []
        return asked, end.value


def update(expected: Any = UNSET) -> Operation[None]:
    return versioned_update("run", "r", expected, UPDATE, VERSION)


def test_an_update_that_wrote_asks_nothing_more() -> None:
    assert play(update(), [WRITTEN]) == (["UPDATE"], None)


def test_no_row_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="run 'r'"):
        play(update(), [NOTHING, NOTHING])


def test_another_version_is_stale() -> None:
    with pytest.raises(StaleVersionError) as stale:
        play(update(3), [NOTHING, [[4]]])
    assert (stale.value.expected, stale.value.actual) == (3, 4)


def test_a_version_that_has_become_the_expected_one_is_tried_again() -> None:
    assert play(update(3), [NOTHING, [[3]], WRITTEN]) == (["UPDATE", "SELECT", "UPDATE"], None)


def test_a_row_that_comes_and_goes_is_busy_in_the_end() -> None:
    with pytest.raises(BackendBusyError):
        play(update(), [NOTHING, [[1]]] * ATTEMPTS)


def test_the_missing_parent_is_named() -> None:
    with pytest.raises(NotFoundError, match="stage 's'"):
        play(insert_under_parents(INSERT, ["r"], ["s"]), [NOTHING, [["r"]], NOTHING])


def test_a_parent_that_has_come_meanwhile_is_tried_again() -> None:
    asked, row = play(insert_under_parents(INSERT, ["r"], []), [NOTHING, [["r"]], WRITTEN])
    assert (asked, row) == (["INSERT", "SELECT", "INSERT"], ["x"])
