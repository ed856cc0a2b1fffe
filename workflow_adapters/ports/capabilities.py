"""Asking an adapter for what not every adapter offers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # Type checkers know this one, installed or not: typing has it from Python 3.13 on.
    from typing_extensions import TypeIs

CapabilityT = TypeVar("CapabilityT")


def supports(adapter: object, capability: type[CapabilityT]) -> TypeIs[CapabilityT]:
    """Whether the adapter has every method and property of one of the `Supports...` protocols.

    Where `isinstance` looks at the class, this asks the object, so a wrapper that passes calls on by `__getattr__` (to
    trace or to count them) offers what is in it: from Python 3.12 on, isinstance says that it offers nothing. A method
    that is None is not offered.
    """
    return all(
        hasattr(adapter, name) if is_property else callable(getattr(adapter, name, None))
        for name, is_property in _members(capability)
    )


@cache
def _members(capability: type) -> list[tuple[str, bool]]:
    """Names, with those that the protocol inherits, and which are properties."""
    return [
        (name, isinstance(getattr(capability, name), property)) for name in dir(capability) if not name.startswith("_")
    ]
