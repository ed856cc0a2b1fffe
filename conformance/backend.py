"""What the author of an adapter supplies: a factory for each port, and what is true of the adapter.

```python
@asynccontextmanager
async def make_queue(env: Env) -> AsyncGenerator[JobQueue]:
    async with connect(f"mongodb://localhost/{env.namespace}") as client:
        yield MyQueue(client, clock=env.clock)

queue = Spec(port=Port.JOB_QUEUE, factory=make_queue, capabilities=[SupportsDefer])
```
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, cast

from conformance.clause import DEFAULT_OPTIONS, DEFAULT_PARAMETERS, Clause, Options, Parameters, Port
from workflow_adapters.clock import ManualClock
from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.json_values import JsonValue

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """What a factory builds an adapter from.

    Every adapter of one `namespace` is on one store and sees the others' rows; stores of different namespaces see
    nothing of each other. `instance` ("A", "B", …) tells the adapters of a store apart.
    """

    namespace: str
    instance: str
    tmp_path: Path
    """A directory of this namespace; it is removed when the store is done with."""
    dsn: str | None
    """The database to use, when one was asked for: ``needs_postgres`` or ``--dsn``."""
    seed: int
    clock: ManualClock
    """The clock that an adapter with ``clock="caller"`` stamps with. It moves only when a clause says so."""
    options: Options = DEFAULT_OPTIONS

    @property
    def fairness(self) -> JobQueueFairness | None:
        """The cap that a queue with SupportsFairness is built with; None is off."""
        return self.options.fairness

    @property
    def worker_id(self) -> str | None:
        """The configured worker id; None leaves the queue without one, so that it may adopt the host's."""
        return self.options.worker_id

    @property
    def busy_timeout(self) -> timedelta | None:
        """How long a write waits for another's lock; None leaves the adapter's own default."""
        return self.options.busy_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture(Generic[A]):
    """An adapter with what helps to try it. A factory yields one where the adapter alone is not enough."""

    adapter: A
    reset: Callable[[], Awaitable[None]] | None = None
    """Empty the store. Without it every clause gets a namespace of its own."""
    new_run: Callable[[], Awaitable[str]] | None = None
    """Make a run and return its id. Without it fresh opaque ids are used."""
    new_stage: Callable[[], Awaitable[str]] | None = None
    """Make a stage, and a run for it, and return its record id."""
    shift_clock: Callable[[timedelta], Awaitable[None]] | None = None
    """With ``clock="database"``: make so much time pass by that clock, or move every stored stamp back by it."""
    store_payload: Callable[[str, JsonValue], Awaitable[None]] | None = None
    """Overwrite the stored payload of a job, by its id, past every check; None is SQL NULL."""


def fixture_of(yielded: object) -> Fixture[Any]:
    """What a factory yields, as a fixture."""
    return cast("Fixture[Any]", yielded) if isinstance(yielded, Fixture) else Fixture(adapter=yielded)


Factory: TypeAlias = "Callable[[Env], AbstractAsyncContextManager[Any]]"
"""Yields an adapter, or a `Fixture` that holds it. Entered and left in one task, several times at once."""


class SpecOptions(TypedDict, total=False):
    """The fields of a `Spec` besides port and factory."""

    name: str
    capabilities: Iterable[type]
    parameters: Parameters
    gaps: Mapping[str, str]
    needs_postgres: bool
    side_by_side: bool
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """An adapter to be judged.

    `capabilities` are the Supports… Protocols that it promises to keep; the clauses of all others are NOT_APPLICABLE.
    `gaps` are what it is known not to do, with the reason, by clause id or by the name of a capability that it has
    and does not promise. A gap's clause is still tried, and a gap that has closed is a failure.
    """

    port: Port
    factory: Factory
    name: str = ""
    capabilities: Iterable[type] = field(default=frozenset())
    parameters: Parameters = DEFAULT_PARAMETERS
    gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    needs_postgres: bool = False
    """Find a server and give each namespace a database of its own, in ``env.dsn``."""
    side_by_side: bool = False
    """Each namespace is a store that has nothing in common with any other, of this spec or another: then several
    processes may try the adapter at the same time."""
    declared: tuple[str, ...] = ()
    """How the command line was told the capabilities of a bare factory."""
    location: str = ""
    """Where the command line finds the factory: ``package.module:make_queue``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", tuple(self.capabilities))
        name = str(getattr(self.factory, "__qualname__", type(self.factory).__qualname__))
        object.__setattr__(self, "location", self.location or f"{self.factory.__module__}:{name}")
        object.__setattr__(self, "name", self.name or name.rpartition(".")[2])
        if inspect.isasyncgenfunction(self.factory):
            # A generator that lacks only its decorator: what is meant is clear.
            object.__setattr__(self, "factory", asynccontextmanager(self.factory))

    @property
    def promised(self) -> frozenset[type]:
        """`capabilities` as a set."""
        return frozenset(self.capabilities)

    def is_concerned_by(self, clause: Clause) -> bool:
        """Whether the clause speaks of an adapter with these parameters, its capabilities aside."""
        return all(getattr(self.parameters, need.name) == need.value for need in clause.requirements)

    def lacks(self, clause: Clause) -> str | None:
        """Why the clause does not apply to this adapter, or None where it does."""
        for capability in clause.capabilities:
            if capability not in self.promised:
                return f"does not declare {capability.__name__}"
        for need in clause.requirements:
            declared = getattr(self.parameters, need.name)
            if declared != need.value:
                return f"declares {need.name}={declared}, the clause is about {need.name}={need.value}"
        return None
