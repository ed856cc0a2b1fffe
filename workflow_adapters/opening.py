"""Opening a bundle by URL or by backend. A driver is imported only here, when its backend is first opened.

A bundle's options are the keyword parameters of its own function: `workflow_adapters.memory.bundle.open_memory`,
`workflow_adapters.sqlite.bundle.open_sqlite`, `workflow_adapters.postgres.bundle.open_postgres`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias, cast

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.ports.adapters import Adapters

Opening: TypeAlias = AbstractAsyncContextManager[Adapters]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FORMS: Final = "sqlite:///relative.db, sqlite:////absolute.db, sqlite://, postgresql://..., memory://"


def open_adapters(url: str, **options: Any) -> Opening:
    """Open the bundle that `url` names: an async context manager, entered and left in one task.

    ``sqlite:///relative.db``, ``sqlite:////absolute.db`` (the path is taken as it is written, nothing in it is
    decoded), ``sqlite://`` (a private throwaway database, migrated, gone at close), ``postgresql://...``,
    ``memory://``. Opening runs no DDL except for ``sqlite://``. A URL or option that is not understood is a
    ConfigurationError, which never shows the URL: it may hold a password.
    """
    match = _SCHEME.match(url) if isinstance(url, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # settings come from anywhere
    if match is None:
        raise ConfigurationError(f"this is no URL of a database; use one of {_FORMS}")
    scheme, rest = match[1].lower(), url[match.end() :]
    if scheme == "memory":
        if rest:
            raise ConfigurationError("memory:// takes nothing after it; share data with open_memory(store=...)")
        return open_memory(**options)
    if scheme == "sqlite":
        return open_sqlite(_sqlite_path(rest), **options)
    if scheme in ("postgresql", "postgres"):
        return open_postgres(url, **options)
    raise ConfigurationError(f"no backend has the URL scheme {scheme!r}; use one of {_FORMS}")


def open_memory(**options: Any) -> Opening:
    """Open a bundle in memory, on a store of its own or on a given ``store=MemoryStore()``."""
    return _open("memory", (), options)


def open_sqlite(path: str | os.PathLike[str] | None = None, **options: Any) -> Opening:
    """Open a bundle on a SQLite file; without a path a private throwaway database, migrated and gone at close."""
    return _open("sqlite", (path,), options)


def open_postgres(dsn_or_pool: Any, **options: Any) -> Opening:
    """Open a bundle on Postgres, by DSN or over an `asyncpg.Pool`, which is not closed."""
    return _open("postgres", (dsn_or_pool,), options)


def _open(backend: str, target: tuple[object, ...], options: dict[str, Any]) -> Opening:
    try:
        module = importlib.import_module(f"workflow_adapters.{backend}.bundle")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("workflow_adapters"):
            raise
        extra = f" (pip install 'workflow-adapters[{backend}]')" if backend == "postgres" else ""
        raise ConfigurationError(f"the {backend} backend needs the package {error.name}{extra}") from error
    function = cast("Callable[..., Opening]", getattr(module, f"open_{backend}"))
    _refuse_unknown(backend, function, options)
    return function(*target, **options)


def _refuse_unknown(backend: str, function: Callable[..., Opening], options: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise ConfigurationError(f"open_{backend} knows no option {unknown[0]!r}; it has {', '.join(sorted(known))}")


def _sqlite_path(rest: str) -> str | None:
    if not rest:
        return None
    path = rest.removeprefix("/")
    if path == rest:
        raise ConfigurationError("a SQLite URL has three slashes before a relative path: sqlite:///relative.db")
    if "?" in path:
        raise ConfigurationError("a SQLite URL takes no query; give options as keyword arguments")
    if not path or path == ":memory:":
        raise ConfigurationError("a SQLite URL needs a path; sqlite:// is a private throwaway database")
    return path
