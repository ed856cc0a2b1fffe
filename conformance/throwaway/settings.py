"""Server settings of a throwaway Postgres."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Durable against the death of every server process, which is what tests do to it; not against the machine's.
DEFAULTS: Mapping[str, str] = {"fsync": "off", "synchronous_commit": "on", "timezone": "UTC", "log_timezone": "UTC"}

# Where the server is found and whose it is are the harness's to say.
_RESERVED = frozenset(
    {"config_file", "data_directory", "hba_file", "listen_addresses", "port", "ssl", "unix_socket_directories"}
)
_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)?")
_WEAK_COMMITS = ("off", "false", "no", "0")


def complete(settings: Mapping[str, str] | None) -> dict[str, str]:
    """The defaults, overridden by `settings`.

    Raises:
        ValueError: a name or value that no server setting has, a setting that is the harness's own, or
            `synchronous_commit` switched off: a killed server would forget commits that it has acknowledged.
    """
    for name, value in (settings or {}).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"settings: {name!r} is no name of a server setting; write it as in postgresql.conf")
        if name in _RESERVED:
            raise ValueError(f"settings: {name} is chosen by the harness; leave it out")
        if "\n" in value or "\0" in value:
            raise ValueError(f"settings: {name} has a line break or a NUL in its value")
        if name == "synchronous_commit" and value.lower() in _WEAK_COMMITS:
            raise ValueError("settings: synchronous_commit must stay on, or a killed server forgets commits")
    return {**DEFAULTS, **(settings or {})}


def as_configuration(settings: Mapping[str, str]) -> str:
    """Lines for postgresql.conf."""
    quoted = ((name, value.replace("\\", "\\\\").replace("'", "''")) for name, value in settings.items())
    return "".join(f"{name} = '{value}'\n" for name, value in quoted)
