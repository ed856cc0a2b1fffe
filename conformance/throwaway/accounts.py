"""The account that a server of ours runs under. PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple, TypedDict

from conformance.throwaway.errors import UnavailableError

_UNPRIVILEGED = ("nobody", "postgres", "daemon")


class PopenOptions(TypedDict, total=False):
    """What makes a subprocess run under an account."""

    user: int
    group: int
    extra_groups: list[int]


class Account(NamedTuple):
    """Another user than the one this process runs as."""

    name: str
    uid: int
    gid: int

    def popen_options(self) -> PopenOptions:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_account() -> Account | None:
    """Whom to run the server as: None for ourselves, or an unprivileged account where we are root.

    Raises:
        UnavailableError: root without any such account.
    """
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise UnavailableError(f"root may run no server, and there is no account {' or '.join(_UNPRIVILEGED)}")


def may_enter(account: Account | None, directory: Path) -> bool:
    """Whether the account can reach `directory` and look inside."""
    if account is None:
        return os.access(directory, os.R_OK | os.X_OK)
    resolved = directory.resolve()
    return all(_has(account, parent, stat.S_IXOTH) for parent in (resolved, *resolved.parents))


def _has(account: Account, path: Path, others_bit: int) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    if status.st_uid == account.uid:
        bit = others_bit << 6
    elif status.st_gid == account.gid:
        bit = others_bit << 3
    else:
        bit = others_bit
    return bool(status.st_mode & bit)


def temporary_directories() -> list[Path]:
    """Where run directories may be, the one to use first. A server under another account must be able to get there."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    return list(dict.fromkeys(path.resolve() for path in candidates if path.is_dir()))
