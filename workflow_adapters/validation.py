"""The checks that every adapter makes of every value, each said once.

A check takes ``(field, value)``, returns the value as it is stored (truncated, copied, of a base type) or raises
InvalidValueError naming the field. Inputs run their checks when they are built; method arguments before the first
statement (`workflow_adapters.arguments`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from workflow_adapters.clock import truncate_to_ms
from workflow_adapters.errors import Entity, InvalidValueError, StaleVersionError
from workflow_adapters.json_values import check_characters, shown
from workflow_adapters.unset import UNSET, Unset

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Check: TypeAlias = Callable[[str, Any], Any]
E = TypeVar("E", bound=Enum)

MAX_KEY_BYTES: Final = 800
INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
_NOT_A_SEQUENCE: Final[tuple[type, ...]] = (str, bytes, dict)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def normalise(target: DataclassInstance, **checks: Check) -> None:
    """Run the checks of a frozen dataclass from its ``__post_init__``.

    UNSET is left alone in fields that are UNSET when they are left out; anywhere else it is a value like any other.
    """
    for field, check in checks.items():
        value = getattr(target, field)
        if value is not UNSET or type(target).__dataclass_fields__[field].default is not UNSET:
            object.__setattr__(target, field, check(field, value))


def optional(check: Check) -> Check:
    """The same check for a value that may be None."""

    def check_optional(field: str, value: object) -> object:
        return None if value is None else check(field, value)

    return check_optional


def unchecked(field: str, value: object) -> object:
    """For a field whose own type has checked it already."""
    return value


def key(field: str, value: object) -> str:
    """An indexed string (id, key, topic, name, version, command type): 1 to 800 bytes of UTF-8."""
    if type(value) is str and value.isascii() and 0 < len(value) <= MAX_KEY_BYTES and "\0" not in value:
        return value  # nearly always, and batches have many
    text = prefix(field, value)
    if not text:
        raise InvalidValueError(field, field, "must not be empty")
    if len(text) * 4 > MAX_KEY_BYTES and len(text.encode()) > MAX_KEY_BYTES:
        raise InvalidValueError(field, field, f"is longer than {MAX_KEY_BYTES} bytes in UTF-8; shorten or hash it")
    return text


def prefix(field: str, value: object) -> str:
    """A literal prefix: any length, the empty one included."""
    if not isinstance(value, str):
        raise InvalidValueError(field, field, f"must be a str, not {type(value).__name__}")
    return check_characters(field, field, str.__str__(value))


def text(field: str, value: object) -> str:
    """Free text that records what happened. Never refused for its characters: unstorable ones become U+FFFD."""
    if not isinstance(value, str):
        raise InvalidValueError(field, field, f"must be a str, not {type(value).__name__}")
    return _UNSTORABLE.sub("\ufffd", str.__str__(value))


def int32(field: str, value: object) -> int:
    """An integer of a 32-bit column."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValueError(field, field, f"must be an int, not {type(value).__name__}")
    if not INT32_MIN <= value <= INT32_MAX:
        raise InvalidValueError(field, field, _range(value))
    return int.__int__(value)


def _range(value: int) -> str:
    shown = str(value) if abs(value) < 10**30 else "the int"
    return f"{shown} is outside the range of a 32-bit integer"


def non_negative(field: str, value: object) -> int:
    """A 32-bit count or span of milliseconds."""
    number = int32(field, value)
    if number < 0:
        raise InvalidValueError(field, field, f"{number} is negative")
    return number


def positive(field: str, value: object) -> int:
    number = int32(field, value)
    if number < 1:
        raise InvalidValueError(field, field, f"{number} is less than 1")
    return number


def finite(field: str, value: object) -> float:
    """A finite float (an int is taken as one); -0.0 becomes 0.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError(field, field, f"must be a float, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidValueError(field, field, "is too large for a float") from error
    if not math.isfinite(number):
        raise InvalidValueError(field, field, f"{number} is not a finite number")
    return number + 0.0


def instant(field: str, value: object) -> datetime:
    """A timezone-aware datetime, as UTC, truncated to the millisecond."""
    if not isinstance(value, datetime):
        raise InvalidValueError(field, field, f"must be a datetime, not {type(value).__name__}")
    if value.tzinfo is UTC and value.microsecond % 1000 == 0:
        return value
    if value.utcoffset() is None:
        raise InvalidValueError(field, field, "is a naive datetime; give it a time zone, for instance tzinfo=UTC")
    try:
        return truncate_to_ms(value.astimezone(UTC))
    except OverflowError as error:
        raise InvalidValueError(field, field, "is outside the years 1 to 9999 in UTC") from error


def span(field: str, value: object) -> timedelta:
    """A timedelta of any sign, truncated to the millisecond."""
    if not isinstance(value, timedelta):
        raise InvalidValueError(field, field, f"must be a timedelta, not {type(value).__name__}")
    return timedelta(milliseconds=value // timedelta(milliseconds=1))


def non_negative_span(field: str, value: object) -> timedelta:
    checked = span(field, value)
    if checked < timedelta(0):
        raise InvalidValueError(field, field, "is negative")
    return checked


def boolean(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError(field, field, f"must be a bool, not {type(value).__name__}")
    return value


def member(enum: type[E]) -> Check:
    """A member of `enum`, or its value."""

    def check_member(field: str, value: object) -> E:
        try:
            return enum(value)
        except ValueError as error:
            known = ", ".join(str(item.value) for item in enum)
            raise InvalidValueError(field, field, f"{shown(value)} is none of {known}") from error

    return check_member


def instance(kind: type) -> Check:
    """An input object of ours, which has checked itself."""

    def check_instance(field: str, value: object) -> object:
        if not isinstance(value, kind):
            raise InvalidValueError(field, field, f"must be a {kind.__name__}, not {type(value).__name__}")
        return value

    return check_instance


def parts(kind: type, **checks: Check) -> Check:
    """A value object of ours that does not check itself; comes back with its fields as their checks give them."""
    check_kind = instance(kind)

    def check_parts(field: str, value: object) -> object:
        checked = check_kind(field, value)
        for name, check in checks.items():
            given = getattr(checked, name)
            try:
                kept = check(field, given)
            except InvalidValueError as error:
                raise InvalidValueError(field, f"{field}.{name}", error.why) from error.__cause__
            if kept is not given:
                checked = replace(checked, **{name: kept})
        return checked

    return check_parts


def sequence(check: Check) -> Check:
    """A sequence (not a str) whose items pass `check`; comes back as a tuple."""

    def check_sequence(field: str, value: object) -> tuple[object, ...]:
        if isinstance(value, _NOT_A_SEQUENCE) or not isinstance(value, Iterable):
            raise InvalidValueError(field, field, f"must be a sequence, not {type(cast(object, value)).__name__}")
        items = cast("Iterable[object]", value)
        return tuple(_item(check, field, index, item) for index, item in enumerate(items))

    return check_sequence


def check_version(entity: Entity, id: str, expected: int | Unset, actual: int) -> None:
    """Raise StaleVersionError unless the version is the expected one, or none is expected."""
    if not isinstance(expected, Unset) and expected != actual:
        raise StaleVersionError(entity, id, expected, actual)


def _item(check: Check, field: str, index: int, item: object) -> object:
    try:
        return check(field, item)
    except InvalidValueError as error:
        path = f"{field}[{index}]{error.path.removeprefix(field)}"
        raise InvalidValueError(field, path, error.why) from error.__cause__
