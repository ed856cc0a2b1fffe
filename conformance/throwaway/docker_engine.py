"""The little that is used of a Docker engine, with bounds on every answer."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Protocol, cast

from conformance.throwaway.errors import UnavailableError

RUN_LABEL = "workflow-adapters-run"
SERVER_LABEL = "workflow-adapters-server"
_DEFAULT_HOST = "unix:///var/run/docker.sock"
_PROBE_SECONDS = 2
_ANSWER_SECONDS = 30
_PULL_SECONDS = 180
_OTHERS_EXPIRE_SECONDS = 2 * 60 * 60


class Container(Protocol):
    """A container, as the docker package has it."""

    status: str

    def start(self) -> None: ...
    def stop(self, *, timeout: int) -> None: ...
    def kill(self) -> None: ...
    def wait(self, *, timeout: int) -> object: ...
    def reload(self) -> None: ...
    def remove(self, *, force: bool, v: bool) -> None: ...
    def logs(self, *, tail: int) -> bytes: ...


class Containers(Protocol):
    """The containers of an engine."""

    def get(self, id: str) -> Container: ...
    def list(self, *, all: bool, filters: Mapping[str, str]) -> list[Container]: ...


class Images(Protocol):
    """The images that an engine has."""

    def get(self, name: str) -> object: ...


class LowLevel(Protocol):
    """Answers as the engine gives them."""

    def containers(self, *, all: bool, filters: Mapping[str, str]) -> list[dict[str, Any]]: ...
    def pull(self, repository: str, *, stream: bool, decode: bool) -> Iterable[dict[str, Any]]: ...


class Client(Protocol):
    """A connection to an engine."""

    api: LowLevel
    containers: Containers
    images: Images

    def ping(self) -> object: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def engine_errors() -> Generator[None]:
    """Translates what docker and testcontainers raise.

    Raises:
        UnavailableError: testcontainers is not installed, or the engine can not be reached or refuses.
    """
    if not all(importlib.util.find_spec(name) for name in ("testcontainers", "testcontainers.community")):
        raise UnavailableError("testcontainers 4.15 is not installed: pip install 'workflow-adapters[conformance]'")
    import docker.errors
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        why = getattr(error, "explanation", None) or str(error)
        raise UnavailableError(f"the Docker engine: {' '.join(why.split())}") from error


@contextlib.contextmanager
def docker_client(seconds: int = _ANSWER_SECONDS) -> Generator[Client]:
    """A connection to the engine that testcontainers would use; each answer may take `seconds`."""
    with engine_errors():
        from testcontainers.core.docker_client import DockerClient

        with contextlib.closing(cast("Client", DockerClient(timeout=seconds).client)) as client:
            yield client


def require_engine() -> None:
    """Raises UnavailableError, within about two seconds, unless a Docker engine answers."""
    _require_socket()
    outcome: list[UnavailableError | None] = []

    def probe() -> None:
        try:
            with docker_client(_PROBE_SECONDS) as client:
                client.ping()
        except UnavailableError as error:
            outcome.append(error)
        else:
            outcome.append(None)

    # Not every transport keeps to the time limit that it is given.
    prober = threading.Thread(target=probe, name="docker-probe", daemon=True)
    prober.start()
    prober.join(_PROBE_SECONDS + 0.5)
    if not outcome:
        raise UnavailableError(f"the Docker engine does not answer within {_PROBE_SECONDS} s")
    if outcome[0] is not None:
        raise outcome[0]


def _require_socket() -> None:
    # Where nobody listens, the docker package forgets its socket, and Python warns of that at some later time.
    with engine_errors():
        from testcontainers.core.docker_client import get_docker_host

        scheme, _, path = (get_docker_host() or _DEFAULT_HOST).partition("://")
    if scheme == "unix":
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_SECONDS)
                probe.connect(path)
        except OSError as error:
            raise UnavailableError(f"no Docker engine at {path}: {error.strerror or error}") from None


def require_image(image: str) -> None:
    """Pulls the image where the engine does not have it. Takes at most three minutes."""
    with docker_client() as client:
        import docker.errors
        from testcontainers.core.config import testcontainers_config

        # What testcontainers will look for: a registry of one's own may come before the name.
        name = f"{testcontainers_config.hub_image_name_prefix}{image}"
        try:
            client.images.get(name)
        except docker.errors.ImageNotFound:
            _pull(client, name)


def _pull(client: Client, image: str) -> None:
    deadline = time.monotonic() + _PULL_SECONDS
    try:
        with engine_errors():
            for progress in client.api.pull(image, stream=True, decode=True):
                if "error" in progress:
                    raise UnavailableError(progress["error"])
                if time.monotonic() > deadline:
                    raise UnavailableError(f"not done within {_PULL_SECONDS} s")
    except UnavailableError as error:
        raise UnavailableError(f"cannot pull {image}: {error}") from error


def labels_of(server: str) -> dict[str, str]:
    """How the containers of one run are told from all others; RUN_ID lets a CI job name its own."""
    return {RUN_LABEL: os.environ.get("RUN_ID") or server, SERVER_LABEL: server}


def remove_containers_of(server: str) -> None:
    """Removes this server's container with its volume, created only or running."""
    with docker_client() as client:
        for container in client.containers.list(all=True, filters={"label": f"{SERVER_LABEL}={server}"}):
            container.remove(force=True, v=True)


def remove_expired_containers() -> None:
    """Removes what other runs left. They may be on other machines, so only age tells that they are over."""
    with docker_client() as client:
        import docker.errors

        oldest = time.time() - _OTHERS_EXPIRE_SECONDS
        for found in client.api.containers(all=True, filters={"label": RUN_LABEL}):
            if found["Created"] < oldest:
                # Another run may be sweeping too.
                with contextlib.suppress(docker.errors.APIError):
                    client.containers.get(found["Id"]).remove(force=True, v=True)
