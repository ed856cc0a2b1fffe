"""Cursors of the operations' listings: where a page ended, opaque to the caller, the same on every backend."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import check_characters

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def encode_cursor(listing: str, at: datetime, id: str) -> str:
    """The `next` of a page whose last item has this sort instant and id. `listing` is the method's name."""
    text = json.dumps([listing, (at - _EPOCH) // _MILLISECOND, id])
    return urlsafe_b64encode(text.encode()).decode()


def decode_cursor(listing: str, after: str) -> tuple[datetime, str]:
    """The sort instant and id that the next page starts after. InvalidValueError for anything but a `next` of ours."""
    try:
        parts: Any = json.loads(urlsafe_b64decode(after.encode()))
        found, milliseconds, row_id = parts
        if found == listing and isinstance(milliseconds, int) and isinstance(row_id, str):
            return _EPOCH + milliseconds * _MILLISECOND, check_characters("after", "after", row_id)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _not_a_cursor(listing) from error
    raise _not_a_cursor(listing)


def _not_a_cursor(listing: str) -> InvalidValueError:
    return InvalidValueError("after", "after", f"is not the `next` of a page of {listing}")
