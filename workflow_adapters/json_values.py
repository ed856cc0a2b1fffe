"""JSON values: what may be stored, how it is written, and how it is read back exactly.

Rule source: the contract's section on JSON. `json_value` refuses what jsonb or JSON cannot hold, with the path of the
offending place, and returns a deep copy of plain ``dict``/``list``/``str``/``int``/``float`` objects.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

from workflow_adapters.errors import BackendError, InvalidValueError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"

MAX_DEPTH: Final = 256
MAX_INT_DIGITS: Final = 4000
_INT_LIMIT: Final = 10**MAX_INT_DIGITS
# From here on repr() uses an exponent, which jsonb would turn into an integer that no longer equals the float.
_EXPONENT_FROM: Final = 1e16
_LONGEST_SHOWN: Final = 200
# json.dumps makes one for each call, which takes as long as writing a small object.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_value(field: str, value: object) -> JsonValue:
    """Check a JSON value and copy it. Raises InvalidValueError naming `field` and the path inside the value."""
    return _copy(field, field, value, 0)


def json_object(field: str, value: object) -> JsonObject:
    """The same for a value that must be a JSON object."""
    if not isinstance(value, dict):
        raise InvalidValueError(field, field, f"must be a dict with str keys, not {_kind(value)}")
    return cast(JsonObject, _copy(field, field, cast(object, value), 0))


def _is_plain(value: object) -> bool:
    """Whether the value is stored as it is, told quickly: most are, and need no path for an error."""
    kind = type(value)
    if kind is str:
        text = cast(str, value)
        return text.isascii() and "\0" not in text
    if kind is int:
        return -_INT_LIMIT < cast(int, value) < _INT_LIMIT
    return kind is bool or value is None


def _copy(field: str, path: str, value: object, depth: int) -> JsonValue:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return check_characters(field, path, str.__str__(value))
    if isinstance(value, int):
        return _integer(field, path, int.__int__(value))
    if isinstance(value, float):
        return _number(field, path, float.__float__(value))
    if isinstance(value, list | dict) and depth >= MAX_DEPTH:
        raise InvalidValueError(field, path, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [
            cast(JsonValue, item) if _is_plain(item) else _copy(field, f"{path}[{index}]", item, depth + 1)
            for index, item in enumerate(items)
        ]
    if isinstance(value, dict):
        return _mapping(field, path, cast("dict[object, object]", value), depth)
    raise InvalidValueError(field, path, f"{_kind(value)} is not a JSON value; convert it first")


def _mapping(field: str, path: str, value: dict[object, object], depth: int) -> JsonObject:
    copied: JsonObject = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidValueError(field, path, f"the key {shown(key)} is {_kind(key)}; JSON keys are str")
        name = key if _is_plain(key) else check_characters(field, f"{path}.{key!a}", str.__str__(key))
        copied[name] = cast(JsonValue, item) if _is_plain(item) else _copy(field, _child(path, name), item, depth + 1)
    return copied


def _integer(field: str, path: str, value: int) -> int:
    if not -_INT_LIMIT < value < _INT_LIMIT:
        raise InvalidValueError(field, path, f"an int of more than {MAX_INT_DIGITS} digits cannot be stored")
    return value


def _number(field: str, path: str, value: float) -> float:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        raise InvalidValueError(field, path, f"{name} is not a JSON number")
    return value + 0.0  # -0.0 + 0.0 is 0.0: jsonb keeps no sign of zero


def check_characters(field: str, path: str, value: str) -> str:
    """Refuse what no text or jsonb column holds: U+0000 and lone surrogates."""
    if "\0" in value:
        raise InvalidValueError(field, path, "contains U+0000, which cannot be stored; remove it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(field, path, "contains a lone surrogate, which cannot be stored") from error
    return value


def shown(value: object) -> str:
    """A refused value in an error's text: shortened, and no error of its own (repr refuses a very long int)."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the caller's __repr__ may raise anything
        return f"some {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"


def _kind(value: object) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def dumps(value: JsonValue) -> str:
    """Write a checked value as JSON text that survives jsonb: every float keeps a fraction part."""
    if _has_large_float(value):
        return _encode(value)
    return _ENCODER.encode(value)


def loads(text: str) -> JsonValue:
    """Read stored JSON text. BackendError for what Python can not read, which none of ours is."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BackendError(f"stored JSON can not be read: {error}") from error
    return cast(JsonValue, value)


def _has_large_float(value: JsonValue) -> bool:
    if isinstance(value, float):
        return abs(value) >= _EXPONENT_FROM
    if isinstance(value, list):
        return any(_has_large_float(item) for item in value)
    if isinstance(value, dict):
        return any(_has_large_float(item) for item in value.values())
    return False


def _encode(value: JsonValue) -> str:
    if isinstance(value, float) and abs(value) >= _EXPONENT_FROM:
        return f"{Decimal(repr(value)):f}.0"
    if isinstance(value, list):
        return f"[{','.join(_encode(item) for item in value)}]"
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{_encode(item)}" for key, item in value.items())
        return f"{{{','.join(members)}}}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
