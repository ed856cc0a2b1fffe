"""Cursors come back exactly, and nothing else is taken for one."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime

import pytest

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.page_cursor import decode_cursor, encode_cursor

AT = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


@pytest.mark.parametrize("id", ["a", "ü" * 400, '"],['])
def test_a_cursor_comes_back(id: str) -> None:
    assert decode_cursor("list_runs", encode_cursor("list_runs", AT, id)) == (AT, id)


@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "é",
        "4oCm",
        encode_cursor("list_jobs", AT, "a"),
        urlsafe_b64encode(b'["list_runs", 1e999, "a"]').decode(),
        urlsafe_b64encode(b'["list_runs", 99999999999999999999, "a"]').decode(),
        urlsafe_b64encode(b'["list_runs", 1]').decode(),
        urlsafe_b64encode(b"7").decode(),
        urlsafe_b64encode(b'["list_runs", 1, "\\ud800"]').decode(),
        urlsafe_b64encode(b'["list_runs", 1, "\\u0000"]').decode(),
        urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_anything_else_is_refused(after: str) -> None:
    with pytest.raises(InvalidValueError, match="not the `next`"):
        decode_cursor("list_runs", after)
