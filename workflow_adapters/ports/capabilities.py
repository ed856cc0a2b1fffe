"""Asking an adapter for what not every adapter offers."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

CapabilityT = TypeVar("CapabilityT")


def supports(adapter: object, capability: type[CapabilityT]) -> TypeGuard[CapabilityT]:
    """Whether the adapter has every method and property of one of the `Supports...` protocols.

    Where `isinstance` looks at the class, this asks the object, so a wrapper that passes calls on by `__getattr__` (to
    trace or to count them) offers what is in it: from Python 3.12 on, isinstance says that it offers nothing.
    """
    return all(hasattr(adapter, name) for name in vars(capability) if not name.startswith("_"))
