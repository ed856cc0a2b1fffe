"""Filters and literal prefixes."""

import random
from datetime import UTC, datetime

import pytest

from workflow_adapters.page_cursor import encode_cursor
from workflow_adapters.records.status import Status
from workflow_adapters.sql.conditions import Conditions, after_prefix
from workflow_adapters.sql.tables import ANNOTATION, RUN
from workflow_adapters.unset import UNSET

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_left_out_is_no_filter_and_none_is_null() -> None:
    where = Conditions(first=2)
    where.compare(ANNOTATION["scope"], "=", UNSET)
    where.compare(ANNOTATION["scope_id"], "=", None)
    where.compare(ANNOTATION["actor_id"], "=", "a")
    where.compare(ANNOTATION["created_at"], ">=", NOW)
    assert where.text == ' AND "scopeId" IS NULL AND "actorId" = $2 AND "createdAt" >= $3::text::timestamp'
    assert where.args == ["a", NOW]
    assert where.next_placeholder == "$4"


def test_a_status_is_compared_as_the_enum() -> None:
    where = Conditions(first=1)
    where.compare(RUN["status"], "=", Status.FAILED)
    assert where.text == " AND status = $1::text::@Status"


def test_a_cursor_is_a_row_comparison() -> None:
    where = Conditions(first=1)
    where.listed_after(RUN["created_at"], "list_runs", encode_cursor("list_runs", NOW, "r1"))
    assert where.text == (
        ' AND "createdAt" <= $1::text::timestamp AND ("createdAt", id COLLATE "C") < ($1::text::timestamp, $2::text)'
    )
    assert where.args == [NOW, "r1"]


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        ("a", "b"),
        ("a%_", "a%`"),
        ("z\x7f", "z\x80"),
        ("\ud7ff", "\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", UNSET),
        ("", UNSET),
    ],
)
def test_what_comes_after_a_prefix(prefix: str, after: object) -> None:
    assert after_prefix(prefix) == after


def test_the_range_of_a_prefix_holds_what_starts_with_it() -> None:
    alphabet = ["", "\x01", "A", "a", "b", "é", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    pick = random.Random(7).choice
    for _ in range(5000):
        prefix, text = pick(alphabet) + pick(alphabet), pick(alphabet) + pick(alphabet) + pick(alphabet)
        after = after_prefix(prefix)
        is_in_range = prefix.encode() <= text.encode() and (after is UNSET or text.encode() < str(after).encode())
        assert is_in_range == text.startswith(prefix), (prefix, text)
