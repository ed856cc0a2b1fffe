"""The adapters that clauses run on: opened when first needed, kept over clauses, emptied between them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from anyio.abc import TaskGroup

from conformance.backend import Env, Fixture, Spec
from conformance.clause import Options, Port
from conformance.concurrency import is_asked_for
from conformance.instance import FixtureError, Instance
from conformance.places import Place
from conformance.residue import residue

# Time never goes back on a store, and a day between clauses keeps the leases of one out of the next.
_BETWEEN_CLAUSES: Final = timedelta(days=1)


class ResidueError(Exception):
    """Rows of an earlier clause are visible: the run is refused."""


class Stand:
    """The adapters of one store that are built with the same options."""

    def __init__(self, spec: Spec, place: Place, options: Options, tasks: TaskGroup) -> None:
        self.spec = spec
        self._options = options
        self._place = place
        self._tasks = tasks
        self._instances: list[Instance] = []

    @property
    def env(self) -> Env:
        return self._env("A")

    async def instance(self, number: int) -> Fixture[Any]:
        while len(self._instances) <= number:
            opening = Instance(self.spec, self._env(_letter(len(self._instances))))
            opening.start(self._tasks)
            # Known before it is open: the clause's time limit may come first, and it must be closed all the same.
            self._instances.append(opening)
        return await self._instances[number].ready()

    async def reset(self) -> bool:
        """Empty the store; False when the fixture has no way to."""
        fixture = await self.instance(0)
        empty = fixture.reset or _clear_of(self.spec.port, fixture.adapter)
        if empty is None:
            return False
        try:
            done = empty()
            if inspect.isawaitable(done):
                await done
        except BaseException as error:
            if is_asked_for(error):
                raise
            raise FixtureError(f"reset raised {type(error).__name__}: {error}") from error
        return True

    async def refuse_residue(self, earlier_ids: Sequence[str]) -> None:
        """Raise ResidueError when the adapter shows rows that no clause of now has written."""
        fixture = await self.instance(0)
        found = await residue(self.spec.port, fixture.adapter, earlier_ids)
        if found is not None:
            raise ResidueError(
                f"rows of an earlier clause are still there ({found}): give the fixture a `reset`, or let the factory"
                f" open a store of its own for each env.namespace"
            )

    def begin(self) -> None:
        self._place.clock.advance(_BETWEEN_CLAUSES)

    async def close(self) -> None:
        """Close every adapter, the last one first; the first error is raised when all have been tried."""
        errors: list[FixtureError] = []
        while self._instances:
            try:
                await self._instances.pop().close()
            except FixtureError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def ended_by_itself(self) -> str | None:
        """Why one of the adapters is gone though nobody closed it."""
        return next((why for kept in self._instances if (why := kept.ended_by_itself()) is not None), None)

    def _env(self, instance: str) -> Env:
        place = self._place
        return Env(
            namespace=place.namespace,
            instance=instance,
            tmp_path=place.directory,
            dsn=place.dsn,
            seed=place.seed,
            clock=place.clock,
            options=self._options,
        )


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _clear_of(port: Port, adapter: object) -> Callable[[], Awaitable[None] | None] | None:
    """The adapter's own ``clear()``, where that means everything: a ledger's clears one stage."""
    clear: Callable[[], Awaitable[None] | None] | None = getattr(adapter, "clear", None)
    if port is Port.STEP_LEDGER or not callable(clear) or inspect.signature(clear).parameters:
        return None
    return clear
