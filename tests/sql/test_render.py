"""The notation, rendered for both databases."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from workflow_adapters.postgres.style import PostgresStyle
from workflow_adapters.records.status import Status
from workflow_adapters.sqlite.style import SqliteStyle

SQLITE = SqliteStyle()
POSTGRES = PostgresStyle("flows", "Status")


@pytest.mark.parametrize(
    ("notation", "sqlite", "postgres"),
    [
        ("SELECT $1", "SELECT ?", "SELECT $1"),
        ("FROM @workflow_runs r", "FROM workflow_runs r", 'FROM "flows"."workflow_runs" r'),
        ("status = $3::text::@Status", "status = ?", 'status = $3::text::"flows"."Status"'),
        ("$2::text::timestamp, $1::int", "?, ?", "$2::text::timestamp, $1::int"),
        ("status::text = 'RUNNING'", "status = 'RUNNING'", "status::text = 'RUNNING'"),
        ('ORDER BY id COLLATE "C" DESC', "ORDER BY id DESC", 'ORDER BY id COLLATE "C" DESC'),
        ("LIMIT 1 FOR UPDATE SKIP LOCKED)", "LIMIT 1)", "LIMIT 1 FOR UPDATE SKIP LOCKED)"),
        ("id = $1 FOR NO KEY UPDATE OF r SKIP LOCKED", "id = ?", "id = $1 FOR NO KEY UPDATE OF r SKIP LOCKED"),
        ('@ms(min("createdAt"))', 'min("createdAt")', '(extract(epoch FROM min("createdAt")) * 1000)::bigint'),
        ("id = $1 FOR KEY SHARE", "id = ?", "id = $1 FOR KEY SHARE"),
        ("id = ANY($1::text[])", "id IN (SELECT value FROM json_each(?))", "id = ANY($1::text[])"),
        (
            "status = ANY($1::text[]::@Status[])",
            "status IN (SELECT value FROM json_each(?))",
            'status = ANY($1::text[]::"flows"."Status"[])',
        ),
        ("id <> ALL($1::text[])", "id NOT IN (SELECT value FROM json_each(?))", "id <> ALL($1::text[])"),
    ],
)
def test_a_notation(notation: str, sqlite: str, postgres: str) -> None:
    assert SQLITE.render(notation).text == sqlite
    assert POSTGRES.render(notation).text == postgres


def test_columns_are_explicit_and_readable_without_a_codec() -> None:
    assert SQLITE.render("@log.columns").text == (
        'id, "createdAt", "workflowRunId", "workflowStageId", level, message, metadata'
    )
    assert POSTGRES.render("@log.columns(l)").text == (
        'l.id, (extract(epoch FROM l."createdAt") * 1000)::bigint, l."workflowRunId", l."workflowStageId", l.level, '
        "l.message, l.metadata::text"
    )


def test_a_column_that_the_database_lacks_has_a_stand_in() -> None:
    older = PostgresStyle(
        "public", "Status", frozenset({"workflow_runs.definitionVersion", "workflow_runs.redriveCount"})
    )
    assert older.render("SELECT @run.columns").text.endswith("metadata::text, NULL, 0")


def test_arguments_follow_their_places_on_sqlite() -> None:
    rendered = SQLITE.render("SELECT $2, $1, $2")
    assert SQLITE.bind(rendered, ("a", "b")) == ("b", "a", "b")
    assert POSTGRES.bind(POSTGRES.render("SELECT $2, $1, $2"), ("a", "b")) == ("a", "b")


def test_arguments_go_over_as_plain_values() -> None:
    instant = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    args = (instant, Status.RUNNING, ["x", "ü"], None, 1.5)
    rendered = "SELECT $1, $2, $3, $4, $5"
    assert SQLITE.bind(SQLITE.render(rendered), args) == (1_767_323_045_678, "RUNNING", '["x", "ü"]', None, 1.5)
    assert POSTGRES.bind(POSTGRES.render(rendered), args) == (
        "2026-01-02 03:04:05.678",
        "RUNNING",
        ["x", "ü"],
        None,
        1.5,
    )


def test_an_instant_of_another_zone_goes_over_as_utc() -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    (text,) = POSTGRES.bind(POSTGRES.render("SELECT $1"), (datetime(1, 1, 2, 5, 30, tzinfo=kolkata),))
    assert text == "0001-01-02 00:00:00.000"


def test_a_statement_is_rendered_once() -> None:
    style = SqliteStyle()
    assert style.render("SELECT $1, 'once'") is style.render("SELECT $1, 'once'")
