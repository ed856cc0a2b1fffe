"""A real Redis for tests: on a socket in a directory of its own, and gone when whoever started it is."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from redis.asyncio import Redis

_SECONDS: Final = 10.0
# The shell waits for the end of its input, which comes when the test process closes it, or dies. Asked kindly, a server
# that can not write its dump does not end.
_UNTIL_INPUT_ENDS: Final = 'redis-server "$@" & read -r _; kill -9 $! 2>/dev/null; wait $! 2>/dev/null; rm -rf "$0"'


def is_installed() -> bool:
    return shutil.which("redis-server") is not None


@contextlib.contextmanager
def running_redis(*options: str) -> Generator[str]:
    """The URL of a server that is started with these options of redis-server."""
    with tempfile.TemporaryDirectory(prefix="workflow-adapters-redis-", ignore_cleanup_errors=True) as directory:
        path, log = Path(directory, "redis.sock"), Path(directory, "log.txt")
        own = ["--port", "0", "--unixsocket", str(path), "--dir", directory, "--save", "", "--logfile", str(log)]
        process = subprocess.Popen(
            ["sh", "-c", _UNTIL_INPUT_ENDS, directory, *own, *options], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        try:
            _wait_for(path, log)
            yield f"unix://{path}"
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(_SECONDS)


@asynccontextmanager
async def own_server(*options: str) -> AsyncGenerator[tuple[str, Redis]]:
    """A server for one test to spoil, and a client beside the queue."""
    with running_redis(*options) as url:
        async with Redis.from_url(url, single_connection_client=True) as outside:
            yield url, outside


def _wait_for(path: Path, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while not _answers(path):
        if time.monotonic() > deadline:
            raise RuntimeError(f"redis-server does not answer: {log.read_text() if log.exists() else 'no log'}")
        time.sleep(0.01)


def _answers(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        probe.connect(str(path))
        probe.sendall(b"PING\r\n")
        return bool(probe.recv(7))
    return False
