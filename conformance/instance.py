"""One adapter, kept open by a task of its own, so that its factory is entered and left in one task."""

from __future__ import annotations

from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from conformance.backend import Env, Fixture, Spec, fixture_of
from conformance.concurrency import is_asked_for
from conformance.leaks import OWN

_CLOSE_SECONDS: Final = 10.0


class FixtureError(Exception):
    """The factory, or something its fixture offers, does not do what it is there for."""


class Instance:
    """An adapter between the entry and the exit of its factory."""

    fixture: Fixture[Any]

    def __init__(self, spec: Spec, env: Env) -> None:
        self._spec = spec
        self._env = env
        self._error: BaseException | None = None
        self._has_yielded = False
        self._opened = anyio.Event()
        self._leave = anyio.Event()
        self._left = anyio.Event()

    def start(self, tasks: TaskGroup) -> None:
        """Begin to enter the factory; `close` must follow, however far that comes."""
        tasks.start_soon(self._keep, name=f"{OWN}{self._spec.name}")

    async def ready(self) -> Fixture[Any]:
        """What the factory has yielded; FixtureError when it raised instead."""
        await self._opened.wait()
        if not self._has_yielded:
            raise FixtureError(f"the factory raised {_told(self._error)}") from self._error
        return self.fixture

    async def close(self) -> None:
        """Leave the factory; FixtureError when that raises or does not end."""
        self._leave.set()
        with anyio.move_on_after(_CLOSE_SECONDS):
            await self._left.wait()
        if not self._left.is_set():
            raise FixtureError(f"leaving the factory has not ended within {_CLOSE_SECONDS:g} s")
        if self._has_yielded and self._error is not None:
            raise FixtureError(f"leaving the factory raised {_told(self._error)}") from self._error

    def ended_by_itself(self) -> str | None:
        """Why the factory's context is over though nobody asked for that, or None while it lasts."""
        if not self._has_yielded or not self._left.is_set() or self._leave.is_set():
            return None
        return "it ended" if self._error is None else _told(self._error)

    async def _keep(self) -> None:
        try:
            async with self._spec.factory(self._env) as yielded:
                self.fixture = fixture_of(yielded)
                self._has_yielded = True
                self._opened.set()
                await self._leave.wait()
        except BaseException as error:
            self._error = error
            if is_asked_for(error):
                raise
        finally:
            self._left.set()
            self._opened.set()


def _told(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
