"""Connection URLs: another database on the same server, and text without the password."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from conformance.throwaway.errors import UnavailableError

SCHEMES = ("postgresql", "postgres")
_DATABASE_OPTIONS = ("dbname", "database")


def build(host: str, port: int, password: str, database: str = "postgres", *, user: str = "postgres") -> str:
    return f"postgresql://{user}:{quote(password, safe='')}@{host}:{port}/{database}"


def with_database(dsn: str, database: str) -> str:
    """The same server and options, another database."""
    parts = urlsplit(dsn)
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in _DATABASE_OPTIONS]
    url = f"{parts.scheme}://{parts.netloc}/{quote(database, safe='')}"
    return f"{url}?{urlencode(options)}" if options else url


def database_of(dsn: str) -> str:
    parts = urlsplit(dsn)
    named = [value for name, value in parse_qsl(parts.query) if name in _DATABASE_OPTIONS]
    return named[-1] if named else unquote(parts.path.removeprefix("/"))


def check_given(dsn: str, source: str) -> str:
    """Refuses what is no URL before a driver sees it, whose complaint would quote the text with its password.

    Raises:
        UnavailableError: `dsn` is no URL of Postgres; the message names `source` and quotes nothing of `dsn`.
    """
    try:
        parts = urlsplit(dsn)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in SCHEMES:
        raise UnavailableError(f"{source} is no URL like postgresql://user:password@host:5432/database")
    if "@" in parts.path or parts.fragment:
        raise UnavailableError(
            f"{source}: percent-encode what is special in user name and password: / as %2F, # as %23"
        )
    return dsn


def without_password(text: str, dsn: str) -> str:
    """`text` with the password of `dsn` blotted out, as written there and as decoded."""
    try:
        parts = urlsplit(dsn)
        secrets = [value for name, value in parse_qsl(parts.query) if name == "password"]
        written = parts.netloc.rpartition("@")[0].partition(":")[2]
    except ValueError:
        return "(not shown: it may quote a password)"
    for secret in (written, unquote(written), *secrets):
        if secret:
            text = text.replace(secret, "***")
    return text
