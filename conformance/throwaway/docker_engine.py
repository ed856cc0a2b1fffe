"""The little that is used of a Docker engine, with bounds on every answer."""

from __future__ import annotations

import contextlib
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
_MISSING = "testcontainers is not installed: pip install 'workflow-adapters[conformance]'"


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
def docker_client(seconds: int = _ANSWER_SECONDS) -> Generator[Client]:
    """A connection to the engine that testcontainers would use; each answer may take `seconds`.

    Raises:
        UnavailableError: testcontainers is not installed, or no engine can be reached.
    """
    try:
        import docker.errors
        import requests
        from testcontainers.core.docker_client import DockerClient
    except ImportError:
        raise UnavailableError(_MISSING) from None
    try:
        client = cast("Client", DockerClient(timeout=seconds).client)
        with contextlib.closing(client):
            yield client
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        why = getattr(error, "explanation", None) or str(error)
        raise UnavailableError(f"the Docker engine: {' '.join(why.split())}") from error


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
    try:
        from testcontainers.core.docker_client import get_docker_host
    except ImportError:
        raise UnavailableError(_MISSING) from None
    scheme, _, path = (get_docker_host() or _DEFAULT_HOST).partition("://")
    if scheme == "unix":
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_SECONDS)
                probe.connect(path)
        except OSError as error:
            raise UnavailableError(f"no Docker engine at {path}: {error.strerror or error}") from None


def require_image(client: Client, image: str) -> None:
    """Pulls the image where the engine does not have it. Takes at most three minutes."""
    import docker.errors

    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        pass
    else:
        return
    deadline = time.monotonic() + _PULL_SECONDS
    for progress in client.api.pull(image, stream=True, decode=True):
        if "error" in progress:
            raise UnavailableError(f"cannot pull {image}: {progress['error']}")
        if time.monotonic() > deadline:
            raise UnavailableError(f"pulling {image} takes longer than {_PULL_SECONDS} s")


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
