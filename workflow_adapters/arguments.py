"""Checks of method arguments, declared once on the port and enforced alike by every adapter.

`checked` marks a port's method; the class decorator `enforces` makes an adapter's method of the same name run those
checks before its first statement. Adapter authors are free to use both.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast

from workflow_adapters.validation import Check

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_ATTRIBUTE = "__argument_checks__"


def checked(**checks: Check) -> Callable[[F], F]:
    """Declare the checks of a port method's parameters."""

    def mark(method: F) -> F:
        setattr(method, _ATTRIBUTE, checks)
        return method

    return mark


def argument_checks(port: type) -> dict[str, dict[str, Check]]:
    """The declared checks of a port: ``{method: {parameter: check}}``."""
    found: dict[str, dict[str, Check]] = {}
    for name, method in inspect.getmembers(port, inspect.isfunction):
        checks = cast("dict[str, Check] | None", getattr(method, _ATTRIBUTE, None))
        if checks is not None:
            found[name] = checks
    return found


def enforces(*ports: type) -> Callable[[C], C]:
    """Class decorator: every method that the class defines itself runs the checks its port declares."""

    def decorate(adapter: C) -> C:
        for port in ports:
            for name, checks in argument_checks(port).items():
                if name in vars(adapter):
                    setattr(adapter, name, _wrap(vars(adapter)[name], checks))
        return adapter

    return decorate


def _wrap(method: Callable[..., Any], checks: dict[str, Check]) -> Callable[..., Any]:
    names = tuple(inspect.signature(method).parameters)
    positions = [(position, name, checks[name]) for position, name in enumerate(names) if name in checks]

    def apply(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        values = list(args)
        for position, name, check in positions:
            if position < len(values):
                values[position] = check(name, values[position])
            elif name in kwargs:
                kwargs[name] = check(name, kwargs[name])
        return tuple(values)

    if inspect.iscoroutinefunction(method):
        asynchronous = cast("Callable[..., Awaitable[Any]]", method)

        @wraps(method)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await asynchronous(*apply(args, kwargs), **kwargs)

        return call_async

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*apply(args, kwargs), **kwargs)

    return call
