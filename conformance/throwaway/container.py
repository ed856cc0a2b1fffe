"""A server of our own in a container, by way of testcontainers."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from conformance.throwaway import dsn as dsns
from conformance.throwaway.docker_engine import (
    Container,
    docker_client,
    engine_errors,
    labels_of,
    remove_containers_of,
    require_image,
)
from conformance.throwaway.errors import UnavailableError
from conformance.throwaway.probe import wait_until_ready

if TYPE_CHECKING:
    from testcontainers.community.postgres import PostgresContainer

CONTAINER_DEFAULT = 16
_POSTGRES_PORT = 5432
# Fixed, since an engine gives another one with every restart; below what it would choose from by itself.
_PORTS = range(15_000, 32_000)
_PORT_ATTEMPTS = 3
_START_SECONDS = 60
_STOP_SECONDS = 20
_LOG_LINES_SHOWN = 3


class ContainerInstance:
    """A server in a container with the labels of this run. Its data outlast a restart of the container."""

    def __init__(self, container: str, dsn: str) -> None:
        self._container = container
        self.dsn = dsn

    @classmethod
    def create(cls, server: str, major: int, settings: Mapping[str, str]) -> ContainerInstance:
        """Pulls the image if need be and starts a container from it.

        Raises:
            UnavailableError: the engine, the image or the server fails.
        """
        image = f"postgres:{major}"
        require_image(image)
        for attempt in range(_PORT_ATTEMPTS):
            try:
                instance = cls._create(server, image, settings)
            except UnavailableError:
                remove_containers_of(server)
                # The port is the one thing that a second try does otherwise.
                if attempt == _PORT_ATTEMPTS - 1:
                    raise
            else:
                instance.wait()
                return instance
        raise AssertionError

    @classmethod
    def _create(cls, server: str, image: str, settings: Mapping[str, str]) -> ContainerInstance:
        password = secrets.token_urlsafe(18)
        with engine_errors(), _without_reaper():
            container = _describe_container(server, image, password, settings)
            try:
                container.start()
                host = container.get_container_host_ip()
                port = container.get_exposed_port(_POSTGRES_PORT)
                return cls(container.get_container_id(), dsns.build(host, port, password))
            finally:
                container.get_docker_client().client.close()

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ContainerInstance:
        return cls(state["container"], state["dsn"])

    def to_state(self) -> dict[str, Any]:
        return {"container": self._container, "dsn": self.dsn}

    @property
    def has_cheap_checkpoints(self) -> bool:
        return True

    def start(self) -> None:
        with self._engine_container() as container:
            container.start()
        self.wait()

    def wait(self) -> None:
        """Returns once it answers a query from outside."""
        wait_until_ready(self.dsn, self._complain_if_gone, _START_SECONDS)

    def stop(self) -> None:
        with self._engine_container() as container:
            container.stop(timeout=_STOP_SECONDS)

    def kill(self) -> None:
        with self._engine_container() as container:
            if container.status == "running":
                container.kill()
                container.wait(timeout=_STOP_SECONDS)

    @contextlib.contextmanager
    def _engine_container(self) -> Generator[Container]:
        with docker_client() as client:
            yield client.containers.get(self._container)

    def _complain_if_gone(self) -> None:
        with self._engine_container() as container:
            if container.status != "running":
                lines = container.logs(tail=_LOG_LINES_SHOWN).decode(errors="replace").split("\n")
                raise UnavailableError(f"the container is {container.status}: {' / '.join(filter(None, lines))}")


def _choose_port() -> int:
    return random.choice(_PORTS)


def _describe_container(server: str, image: str, password: str, settings: Mapping[str, str]) -> PostgresContainer:
    from testcontainers.community.postgres import PostgresContainer
    from testcontainers.core.config import ConnectionMode

    class Unawaited(PostgresContainer):
        """Waited for by a query from outside: one from inside proves nothing about the port, and is asked every 1 s."""

        def _connect(self) -> None:
            pass

    container = Unawaited(
        image,
        username="postgres",
        password=password,
        dbname="postgres",
        driver=None,
        labels=labels_of(server),
        command=["postgres", *(part for item in settings.items() for part in ("-c", "=".join(item)))],
    )
    client = container.get_docker_client()
    port = _choose_port()
    is_near = client.get_connection_mode() is ConnectionMode.docker_host and client.host() in ("localhost", "127.0.0.1")
    # testcontainers passes on what docker takes, but types less of it: an address to bind to, beside the port.
    ports = cast("dict[str, Any]", container.ports)
    ports[str(_POSTGRES_PORT)] = ("127.0.0.1", port) if is_near else port
    return container


@contextlib.contextmanager
def _without_reaper() -> Generator[None]:
    """No reaper for this container alone: it would go with the first worker that leaves a run of several.

    The watchdog does the reaper's work, and the labels its sweeping.
    """
    from testcontainers.core.config import testcontainers_config

    before = testcontainers_config.ryuk_disabled
    testcontainers_config.ryuk_disabled = True
    try:
        yield
    finally:
        testcontainers_config.ryuk_disabled = before
