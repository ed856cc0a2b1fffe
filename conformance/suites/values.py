"""Values that adapters lose or change, by kind: what must come back as it went in, and what must be refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from conformance.context import Context
from workflow_adapters.json_values import MAX_DEPTH, MAX_INT_DIGITS, JsonObject, JsonValue

PLAIN: Final[JsonObject] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "minus": -1,
    "float": 0.1,
    "whole float": 1.0,
    "text": "text",
    "empty text": "",
    "array": [1, "two", None, [3.5, []]],
    "object": {"a": {"b": {"c": [{"d": None}]}}},
    "empty array": [],
    "empty object": {},
}

_BETWEEN: Final = ("", "/", ":", "|", "-", "_", ".", ",", "#", " ", "\x1f")
ALIKE: Final = tuple(pair for between in _BETWEEN for pair in (("a", f"b{between}c"), (f"a{between}b", "c")))
"""Keys of two parts, all different, of which two and two are one when the parts are joined by something."""

INTEGERS: Final[JsonObject] = {
    "2**31": 2**31,
    "2**53 + 1": 2**53 + 1,
    "2**63": 2**63,
    "-2**63 - 1": -(2**63) - 1,
    "2**64": 2**64,
    "10**40 + 1": 10**40 + 1,
    f"{MAX_INT_DIGITS} digits": 10**MAX_INT_DIGITS - 1,
}

FLOATS: Final[JsonObject] = {
    "0.0": 0.0,
    "0.1 + 0.2": 0.1 + 0.2,
    "1/3": 1 / 3,
    "pi": math.pi,
    "100.0": 100.0,
    "2**53 as a float": 2.0**53,
    "1e16": 1e16,
    "1e22": 1e22,
    "1e23": 1e23,
    "1e300": 1e300,
    "-1e300": -1e300,
    "1e-7": 1e-7,
    "largest": 1.7976931348623157e308,
    "smallest normal": 2.2250738585072014e-308,
    "smallest": 5e-324,
}

STRINGS: Final[dict[str, str]] = {
    "accents": "\u00e9\u00e0\u00fc\u00df",
    "combining": "e\u0301",
    "astral": "\U0001f600\U00010348",
    "right to left": "\u202eabc\u05d0",
    "quotes": "'\"`$$",
    "backslashes": "a\\b\\u0041\\\\",
    "wildcards": "%_*?",
    "white space": " \t\r\n\u00a0\u2028 ",
    "control": "\x01\x1f\x7f\u0085",
    "placeholders": "$1 ?1 :a %s {0}",
    "last characters": "\ud7ff\ue000\uffff\U0010ffff",
    "looks like JSON": '{"a": [1, null]}',
    "looks like null": "null",
    "looks like a number": "0012",
}

TEXTS: Final[JsonObject] = {**STRINGS}

KEYS: Final[JsonObject] = {"": 1, "a.b": 2, "$ref": 3, "a b": 4, "\u00e9": 5, "e\u0301": 6, "0": 7, '"': 8, "\\": 9}


def _nested(depth: int) -> JsonObject:
    value: JsonValue = 0
    for level in range(depth - 1):
        value = [value] if level % 2 else {"in": value}
    return {"deep": value}


DEEP: Final[JsonObject] = _nested(MAX_DEPTH)
"""An object nested as deeply as is allowed."""

SCALARS: Final[tuple[JsonValue, ...]] = (True, False, 0, 1.0, "", "null", [], [None], {})
"""Documents that are no object, or empty."""

UNSTORABLE_TEXTS: Final[dict[str, tuple[str, str]]] = {
    "U+0000": ("a\0b", "a\ufffdb"),
    "a lone high surrogate": ("a\ud800b", "a\ufffdb"),
    "a lone low surrogate": ("\udfff", "\ufffd"),
}
"""Free text, and what is stored of it."""

BAD_KEYS: Final[dict[str, str]] = {
    "an empty text": "",
    "U+0000": "a\0b",
    "a lone surrogate": "a\ud800b",
    "801 bytes": "k" * 801,
    "802 bytes in 401 characters": "\u00e9" * 401,
}
"""What no id, key, topic, name, version or command type may be."""

GOOD_KEYS: Final[tuple[str, ...]] = (*STRINGS.values(), "k" * 800, "\u00e9" * 400, " ", "0")
"""What every id, key, topic, name, version or command type may be."""

INSTANTS: Final[dict[str, datetime]] = {
    "the epoch": datetime(1970, 1, 1, tzinfo=UTC),
    "a millisecond before the epoch": datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    "the last millisecond of a second": datetime(2026, 2, 28, 23, 59, 59, 999_000, tzinfo=UTC),
    "a leap day": datetime(2028, 2, 29, 12, tzinfo=UTC),
    "the year 1": datetime(1, 1, 2, tzinfo=UTC),
    "the year 9999": datetime(9999, 12, 30, 23, 59, 59, 999_000, tzinfo=UTC),
    "an instant in Kolkata": datetime(2026, 7, 1, 3, 15, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "an instant in New York": datetime(2026, 1, 1, 22, tzinfo=timezone(timedelta(hours=-5))),
}

NAIVE: Final = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - what every adapter must refuse


def expect_instant(ctx: Context[Any], subject: str, observed: datetime | None, expected: datetime) -> None:
    """The stored instant is the expected one, and comes back as UTC."""
    present = ctx.expect(subject, observed).is_not_none()
    ctx.expect(subject, present).equals(expected)
    ctx.expect(f"offset of {subject}", present.utcoffset()).equals(timedelta(0))
