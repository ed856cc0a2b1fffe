"""A server of our own from PostgreSQL programs on this machine."""

from __future__ import annotations

import os
import random
import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.throwaway import dsn as dsns
from conformance.throwaway.accounts import Account, PopenOptions, may_enter, server_account
from conformance.throwaway.errors import UnavailableError
from conformance.throwaway.installations import Installation
from conformance.throwaway.probe import wait_until_ready
from conformance.throwaway.processes import end_processes_on, postmaster_of
from conformance.throwaway.settings import as_configuration

_HOST = "127.0.0.1"
# Below what systems hand out for outgoing connections: one of those must not get the port while the server is down.
_PORTS = range(15_000, 32_000)
_PORT_ATTEMPTS = 5
_PROGRAM_SECONDS = 120
_START_SECONDS = 60
_STOP_SECONDS = 30
_LOG_LINES_SHOWN = 3


class LocalInstance:
    """A server whose data are in `directory`/data."""

    def __init__(self, directory: Path, programs: Path, port: int, password: str) -> None:
        self._directory = directory
        self._programs = programs
        self._port = port
        self._password = password
        self._account = server_account()

    @classmethod
    def create(cls, directory: Path, installation: Installation, settings: Mapping[str, str]) -> LocalInstance:
        """Makes a database cluster and starts a server on it.

        Raises:
            UnavailableError: initdb or the server fails; the message has the last lines that they said.
        """
        instance = cls(directory, installation.programs, 0, secrets.token_urlsafe(18))
        if not may_enter(instance._account, installation.programs):
            raise UnavailableError(f"{installation.programs} is closed to {_name(instance._account)}")
        instance._initialise(settings)
        for _ in range(_PORT_ATTEMPTS):
            instance._port = _free_port()
            instance._configure({"port": str(instance._port)})
            try:
                instance.start()
            except UnavailableError:
                # Somebody else may have taken the port since we looked.
                if _is_free(instance._port):
                    raise
            else:
                return instance
        raise UnavailableError(f"each of {_PORT_ATTEMPTS} free ports was taken before the server had it")

    @classmethod
    def from_state(cls, directory: Path, state: Mapping[str, Any]) -> LocalInstance:
        return cls(directory, Path(state["programs"]), state["port"], state["password"])

    def to_state(self) -> dict[str, Any]:
        return {"programs": str(self._programs), "port": self._port, "password": self._password}

    @property
    def dsn(self) -> str:
        return dsns.build(_HOST, self._port, self._password)

    @property
    def has_cheap_checkpoints(self) -> bool:
        return True

    def start(self) -> None:
        self._run("pg_ctl", "start", "-D", self._data, "-l", self._log, "-w", "-t", _START_SECONDS, "-s")
        wait_until_ready(self.dsn, self._complain_if_gone, _START_SECONDS)

    def stop(self) -> None:
        if postmaster_of(self._data) is not None:
            self._run("pg_ctl", "stop", "-D", self._data, "-m", "fast", "-w", "-t", _STOP_SECONDS, "-s")

    def kill(self) -> None:
        end_processes_on(self._data, gently=False)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _log(self) -> Path:
        return self._directory / "server.log"

    def _initialise(self, settings: Mapping[str, str]) -> None:
        password_file = self._directory / "password"
        for file, content in ((password_file, self._password), (self._log, "")):
            file.touch(mode=0o600)
            file.write_text(content)
            self._give(file)
        self._data.mkdir(mode=0o700)
        self._give(self._data)
        self._run(
            *("initdb", "-D", self._data, "-U", "postgres", "--pwfile", password_file, "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--no-locale", "--no-sync"),
        )
        password_file.unlink()
        # No socket file, and no shared memory outside the data directory, that could outlive the server.
        self._configure(
            {"listen_addresses": _HOST, "unix_socket_directories": "", "dynamic_shared_memory_type": "mmap"}
        )
        self._configure(settings)

    def _configure(self, settings: Mapping[str, str]) -> None:
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(as_configuration(settings))

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)

    def _run(self, program: str, *arguments: object) -> None:
        output = self._directory / "output"
        options = self._account.popen_options() if self._account else PopenOptions()
        with output.open("w") as file:
            try:
                process = subprocess.Popen(
                    [self._programs / program, *map(str, arguments)],
                    cwd=self._directory,
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    umask=0o077,
                    # What the terminal sends is for us to act on; initdb's own processes would leave shared memory.
                    start_new_session=True,
                    **options,
                )
            except OSError as error:
                raise UnavailableError(f"{program}: {error}") from None
        try:
            code = process.wait(_PROGRAM_SECONDS)
        except BaseException as error:
            end_processes_on(self._data, gently=False)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise UnavailableError(f"{program} takes longer than {_PROGRAM_SECONDS} s") from None
            raise
        if code != 0:
            raise UnavailableError(f"{program} failed: {_last_lines(output)} {_last_lines(self._log)}".rstrip())

    def _complain_if_gone(self) -> None:
        if postmaster_of(self._data) is None:
            raise UnavailableError(f"the server ended while starting: {_last_lines(self._log)}")


def _name(account: Account | None) -> str:
    return f"the account {account.name}, which a server started by root runs under" if account else "this user"


def _environment() -> dict[str, str]:
    # The caller's PGPORT, PGDATA or PGOPTIONS are about other servers, and messages are to be in English.
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _last_lines(file: Path) -> str:
    lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-_LOG_LINES_SHOWN:])


def _free_port() -> int:
    for _ in range(1000):
        port = random.choice(_PORTS)
        if _is_free(port):
            return port
    raise UnavailableError(f"no free port on {_HOST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True
