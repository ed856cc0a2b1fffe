"""The ways to a server, in the order they are tried."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from conformance.throwaway import given
from conformance.throwaway.accounts import server_account
from conformance.throwaway.container import CONTAINER_DEFAULT, ContainerInstance
from conformance.throwaway.docker_engine import remove_expired_containers, require_engine
from conformance.throwaway.errors import UnavailableError
from conformance.throwaway.given import GivenInstance
from conformance.throwaway.installations import (
    EMBEDDED_DEFAULT,
    EMBEDDED_DIRECTORIES,
    embedded_installation,
    local_installation,
    local_installations,
)
from conformance.throwaway.instance import Instance
from conformance.throwaway.leftovers import CONTAINER, note_outside, sweep_abandoned_containers
from conformance.throwaway.local import LocalInstance
from conformance.throwaway.run_directory import RunDirectory
from conformance.throwaway.settings import DEFAULTS

VARIABLE = "CONFORMANCE_POSTGRES_RUNG"
KINDS = ("dsn", "testcontainers", "local", "embedded")
_WANTED = re.compile(rf"({'|'.join(KINDS)})?(?:(?:^|(?<=[a-z])-)(\d+))?")


class Wanted(NamedTuple):
    """Which rung and which major version are asked for; None leaves the choice to the ladder."""

    kind: str | None
    major: int | None

    @classmethod
    def parse(cls, preferred: str | None) -> Wanted:
        """Reads ``embedded``, ``embedded-18``, ``18``; where `preferred` is None, what the environment says.

        Raises:
            ValueError: it is none of these.
        """
        source = "preferred" if preferred is not None else VARIABLE
        text = (preferred if preferred is not None else os.environ.get(VARIABLE, "")).strip()
        found = _WANTED.fullmatch(text)
        if found is None:
            kinds = ", ".join(KINDS)
            raise ValueError(f"{source}: {text!r} is neither a rung ({kinds}) nor a version (16) nor both (local-16)")
        return cls(found[1], int(found[2]) if found[2] else None)


class Rung(NamedTuple):
    """One way to a server. `start` raises UnavailableError where it leads nowhere."""

    kind: str
    major: int | None
    start: Callable[[RunDirectory, Mapping[str, str]], Instance]

    @property
    def name(self) -> str:
        return self.kind if self.major is None else f"{self.kind}-{self.major}"


def rungs(wanted: Wanted) -> list[Rung]:
    """Those that are asked for, in the ladder's order."""
    kinds = KINDS if wanted.kind is None else (wanted.kind,)
    return [_rung(kind, wanted.major) for kind in kinds]


def every_rung() -> list[Rung]:
    """One for each server that this machine may have to offer."""
    local = [_rung("local", installation.major) for installation in local_installations()] or [_rung("local", None)]
    embedded = [_rung("embedded", major) for major in EMBEDDED_DIRECTORIES]
    return [_rung("dsn", None), _rung("testcontainers", None), *local, *embedded]


def _rung(kind: str, major: int | None) -> Rung:
    match kind:
        case "dsn":
            return Rung(kind, None, _start_given)
        case "testcontainers":
            major = major or CONTAINER_DEFAULT
            return Rung(kind, major, partial(_start_container, major))
        case "local":
            return Rung(kind, major, partial(_start_local, major))
        case _:
            major = major or EMBEDDED_DEFAULT
            return Rung(kind, major, partial(_start_embedded, major))


def resume(rung: str, run: RunDirectory, state: Mapping[str, Any]) -> Instance:
    """The server that another process of the run has started."""
    if rung == "dsn":
        return GivenInstance()
    if rung.startswith("testcontainers"):
        return ContainerInstance.from_state(state)
    return LocalInstance.from_state(run.path, state)


def _start_given(_: RunDirectory, settings: Mapping[str, str]) -> Instance:
    instance = GivenInstance()
    if own := sorted(name for name in settings if settings[name] != DEFAULTS.get(name)):
        raise UnavailableError(f"the server of {given.VARIABLE} has its own settings; wanted: {', '.join(own)}")
    return instance


def _start_container(major: int, run: RunDirectory, settings: Mapping[str, str]) -> Instance:
    require_engine()
    sweep_abandoned_containers()
    remove_expired_containers()
    note_outside(run, CONTAINER)
    return ContainerInstance.create(run.id, major, settings)


def _start_local(major: int | None, run: RunDirectory, settings: Mapping[str, str]) -> Instance:
    return LocalInstance.create(run.path, local_installation(major), settings)


def _start_embedded(major: int, run: RunDirectory, settings: Mapping[str, str]) -> Instance:
    return LocalInstance.create(run.path, embedded_installation(major, server_account(), run.path), settings)
