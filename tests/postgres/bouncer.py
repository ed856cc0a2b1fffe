"""A real PgBouncer in transaction mode in front of a throwaway server."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from conformance.throwaway.accounts import PopenOptions, server_account
from tests.postgres.support import at

CONFIGURATION = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {directory}/users.txt
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
server_reset_query_always = 1
server_reset_query = DISCARD ALL
logfile = {directory}/log.txt
pidfile = {directory}/pid.txt
"""


class Bouncer:
    """Every transaction gets some server connection, from which nothing of earlier ones can be told."""

    def __init__(self, port: int) -> None:
        self._port = port

    def dsn(self, dsn: str) -> str:
        """The same database by way of it."""
        return at(dsn, "127.0.0.1", self._port)


def is_installed() -> bool:
    return shutil.which("pgbouncer") is not None


@contextlib.contextmanager
def running_bouncer(dsn: str) -> Generator[Bouncer]:
    parts = urlsplit(dsn)
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="workflow-adapters-bouncer-") as name:
        directory = Path(name)
        port = _free_port()
        (directory / "users.txt").write_text(f'"{parts.username}" "{unquote(parts.password or "")}"\n')
        (directory / "bouncer.ini").write_text(
            CONFIGURATION.format(host=parts.hostname, port=parts.port, own_port=port, directory=directory)
        )
        if account is not None:
            for path in (directory, *directory.iterdir()):
                shutil.chown(path, account.uid, account.gid)
        options = PopenOptions() if account is None else account.popen_options()
        command = ["pgbouncer", str(directory / "bouncer.ini")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        try:
            _wait_for(port, process, directory / "log.txt")
            yield Bouncer(port)
        finally:
            process.terminate()
            process.wait(timeout=10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"pgbouncer does not answer: {log.read_text() if log.exists() else 'no log'}")
        time.sleep(0.02)
