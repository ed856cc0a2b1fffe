"""The DSN: what is wrong with one is told when the bundle is opened, and without showing any of it."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from workflow_adapters.errors import ConfigurationError

SCHEMES: Final = ("postgresql", "postgres")

_USER: Final = "user or password"
_ENCODE: Final = "percent-encode what is special in it (urllib.parse.quote(text, safe=''))"
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](?::(.*))?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LAST_PORT: Final = 65535


def check_dsn(dsn: str) -> None:
    """ConfigurationError where a DSN can not be read, or would be read otherwise than it was meant.

    The message names what is wrong of scheme, user or password, host, port, database and query.
    """
    scheme, separator, rest = dsn.partition("://")
    if not separator or scheme.lower() not in SCHEMES:
        raise _refused("scheme", f"it is not {SCHEMES[0]}://")
    before_query, _, query = rest.partition("?")
    authority, _, database = before_query.partition("/")
    user, _, hosts = authority.rpartition("@")
    if "#" in rest or "@" in database or any(mark in user for mark in "@[]"):
        raise _refused("user, password or database", "it holds one of @ : / ? # [ ]; percent-encode it")
    for field, text in ((_USER, user), ("host", hosts), ("database", database), ("query", query)):
        _check_characters(field, text)
    for host in hosts.split(",") if hosts else ():
        _check_host(host)
    _check_query(query)
    try:
        urlsplit(dsn)
    except ValueError:
        # Characters that turn into / ? # @ : when they are normalised; addresses that this Python takes one of only.
        raise _refused(f"{_USER}, or host", f"it can not be read; {_ENCODE}, or give hosts as ?host=...") from None


def _check_characters(field: str, text: str) -> None:
    if _CONTROL.search(text) or _BAD_ESCAPE.search(text):
        raise _refused(field, f"it holds a control character, or a % that begins no escape; {_ENCODE}")
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeError:
        raise _refused(field, "it is not in UTF-8") from None
    if "\0" in decoded:
        raise _refused(field, "it holds U+0000")


def _check_host(text: str) -> None:
    if text.startswith("["):
        found = _BRACKETED.fullmatch(text)
        if found is None or not _is_ipv6(found[1]):
            raise _refused("host", "in brackets there is one IPv6 address, as in [::1]:5432")
        port = found[2]
    else:
        host, _, port = text.partition(":")
        if not host or any(mark in "[]" or mark.isspace() for mark in host):
            raise _refused("host", "it is empty, or holds a space or a bracket")
    _check_port(port or "")


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _check_port(text: str) -> None:
    if text and not (_PORT.fullmatch(text) and 0 < int(text) <= _LAST_PORT):
        raise _refused(
            "port",
            f"it is no number up to {_LAST_PORT}; an IPv6 address goes in brackets; if this is the password, {_ENCODE}",
        )


def _check_query(query: str) -> None:
    try:
        given = parse_qs(query, strict_parsing=True, keep_blank_values=True) if query else {}
    except ValueError:
        raise _refused("query", f"it is not of the form ?name=value&...; if this is the password, {_ENCODE}") from None
    hosts = given.get("host", [""])[-1]
    if "," in hosts and not all(hosts.split(",")):
        raise _refused("query", "host has an empty name in its list")
    for port in given.get("port", [""])[-1].split(","):
        _check_port(port)


def _refused(field: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"the Postgres DSN can not be used. {field}: {why}")
