"""Opening a bundle by URL or by backend. A driver is imported only here, when its backend is first opened.

What an option is for, and its default, is told by the backend's own function of the same name:
`workflow_adapters.memory.bundle.open_memory`, `workflow_adapters.sqlite.bundle.open_sqlite`, and by
`workflow_adapters.postgres.options.PostgresSettings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, cast

from workflow_adapters.built_in import BuiltInAdapters, BuiltInPostgresAdapters
from workflow_adapters.errors import ConfigurationError
from workflow_adapters.options import AdapterOptions, MemoryOptions, PostgresOptions, SqliteOptions

if TYPE_CHECKING:
    import asyncpg

Opening: TypeAlias = AbstractAsyncContextManager[BuiltInAdapters]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FORMS: Final = "sqlite:///relative.db, sqlite:////absolute.db, sqlite://, postgresql://..., memory://"


def open_adapters(url: str, **options: Unpack[AdapterOptions]) -> Opening:
    """Open the bundle that `url` names: an async context manager, entered and left in one task.

    ``sqlite:///relative.db``, ``sqlite:////absolute.db`` (the path is taken as it is written, nothing in it is
    decoded), ``sqlite://`` (a private throwaway database, migrated, gone at close), ``postgresql://...``,
    ``memory://``. Opening runs no DDL except for ``sqlite://``. A URL or option that is not understood, or that is
    another backend's, is a ConfigurationError, which never shows the URL: it may hold a password.
    """
    match = _SCHEME.match(url) if isinstance(url, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # settings come from anywhere
    if match is None:
        raise ConfigurationError(f"this is no URL of a database; use one of {_FORMS}")
    scheme, rest = match[1].lower(), url[match.end() :]
    if scheme == "memory":
        if rest:
            raise ConfigurationError("memory:// takes nothing after it; share data with open_memory(store=...)")
        return open_memory(**cast("MemoryOptions", options))
    if scheme == "sqlite":
        return open_sqlite(_sqlite_path(rest), **cast("SqliteOptions", options))
    if scheme in ("postgresql", "postgres"):
        return open_postgres(url, **cast("PostgresOptions", options))
    raise ConfigurationError(f"no backend has the URL scheme {scheme!r}; use one of {_FORMS}")


def open_memory(**options: Unpack[MemoryOptions]) -> Opening:
    """Open a bundle in memory, on a store of its own or on a given ``store=MemoryStore()``."""
    _refuse_unknown("open_memory", options, MemoryOptions.__optional_keys__)
    from workflow_adapters.memory import bundle

    return bundle.open_memory(**options)


def open_sqlite(path: str | os.PathLike[str] | None = None, **options: Unpack[SqliteOptions]) -> Opening:
    """Open a bundle on a SQLite file; without a path a private throwaway database, migrated and gone at close."""
    _refuse_unknown("open_sqlite", options, SqliteOptions.__optional_keys__)
    with _missing_driver_named("sqlite"):
        from workflow_adapters.sqlite import bundle
    return bundle.open_sqlite(path, **options)


def open_postgres(
    dsn_or_pool: str | asyncpg.Pool[Any], **options: Unpack[PostgresOptions]
) -> AbstractAsyncContextManager[BuiltInPostgresAdapters]:
    """Open a bundle on Postgres, by DSN or over an `asyncpg.Pool`, which is not closed."""
    _refuse_unknown("open_postgres", options, PostgresOptions.__optional_keys__)
    with _missing_driver_named("postgres"):
        from workflow_adapters.postgres import bundle
    return bundle.open_postgres(dsn_or_pool, **options)


@contextmanager
def _missing_driver_named(backend: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("workflow_adapters"):
            raise
        extra = f" (pip install 'workflow-adapters[{backend}]')" if backend == "postgres" else ""
        raise ConfigurationError(f"the {backend} backend needs the package {error.name}{extra}") from error


def _refuse_unknown(function: str, options: Collection[str], known: frozenset[str]) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        raise ConfigurationError(f"{function} knows no option {unknown[0]!r}; it has {', '.join(sorted(known))}")


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
