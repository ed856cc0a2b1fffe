"""What a clause is: one testable sentence of the contract, with an id that never changes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from conformance.context import Context
    from workflow_adapters.inputs.job_queue import JobQueueFairness


class Level(StrEnum):
    """How much a clause binds, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


MUST: Final = Level.MUST
SHOULD: Final = Level.SHOULD
MAY: Final = Level.MAY


class Port(Enum):
    """The four ports; the value is the first part of their clauses' ids."""

    WORKFLOW_PERSISTENCE = "WP"
    JOB_QUEUE = "JQ"
    STEP_LEDGER = "SL"
    AI_CALL_LOGGER = "AI"

    @property
    def title(self) -> str:
        """The Protocol's name."""
        return _TITLES[self]

    @property
    def slug(self) -> str:
        """As a command line writes it: ``job-queue``."""
        return self.name.lower().replace("_", "-")


_TITLES: Final = {
    Port.WORKFLOW_PERSISTENCE: "WorkflowPersistence",
    Port.JOB_QUEUE: "JobQueue",
    Port.STEP_LEDGER: "StepLedger",
    Port.AI_CALL_LOGGER: "AICallLogger",
}


class Evidence(StrEnum):
    """How a clause is proven. All are by examples today; the other kinds are kept for clauses that are yet to come."""

    EXAMPLE = "example"
    """Chosen inputs and plain assertions, races of adapters among them."""
    MODEL = "model"
    HISTORY = "history"
    FAULT = "fault"
    CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What an adapter is, where the contract leaves a choice. Declared by its author, never guessed."""

    clock: Literal["caller", "database"] = "caller"
    """Which clock stamps and decides: ``env.clock``, or one that the harness can not set."""
    durability: Literal["process", "crash"] = "process"
    """What an acknowledged write survives: the end of the call, or the death of process and server.

    Its author's word, which reports repeat: no clause needs it yet, and nothing of the harness kills a server.
    """
    serves: Literal["honoured", "ignored"] = "honoured"
    """Whether a claim selects by `serves`; a transport that can not select says "ignored"."""
    writers: Literal["one", "many"] = "many"
    """Whether one write transaction at a time shuts all others out."""
    definition_versions: Literal["stored", "absent"] = "stored"
    """Whether the schema has the definition tables and columns."""
    parents: Literal["checked", "unchecked"] = "checked"
    """Whether a row's missing run or stage is refused (persistence always does; a ledger or queue may stand alone)."""
    job_order: Literal["insertion", "created_at"] = "insertion"
    """How far the order of jobs of equal priority is fixed; "created_at" leaves equal instants unordered."""


DEFAULT_PARAMETERS: Final = Parameters()


@dataclass(frozen=True, slots=True)
class Requires:
    """A need of a clause: the adapter's parameter `name` is declared to be `value`."""

    name: str
    value: str

    def __post_init__(self) -> None:
        known = [item.name for item in fields(Parameters)]
        if self.name not in known:
            raise ValueError(f"{self.name!r} is no parameter; there are {', '.join(known)}")

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a clause wants its adapters built with; factories find it on ``env``."""

    fairness: JobQueueFairness | None = None
    worker_id: str | None = None
    """A configured worker id; None leaves the adapter without one."""
    busy_timeout: timedelta | None = None


DEFAULT_OPTIONS: Final = Options()
DEFAULT_TIME_LIMIT: Final = timedelta(seconds=5)
TIME_LIMIT_OF_MANY_CALLS: Final = timedelta(seconds=30)
"""Of clauses with more than a hundred calls, one after the other: each may take 50 ms, as on a database far away."""

Need: TypeAlias = "type | Requires"
"""A capability (one of the Supports… Protocols) or a parameter."""
ClauseFunction: TypeAlias = "Callable[[Context[Any]], Awaitable[None]]"

ID: Final = re.compile(r"(?P<port>WP|JQ|SL|AI)-(?P<area>[A-Z]{2,12})-(?P<number>\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence of the contract and the function that tries it.

    `after` names clauses without which this one can not be judged: when one of them is not met, it is NOT_TESTED.
    """

    id: str
    level: Level
    text: str
    why: str
    hints: tuple[str, ...]
    function: ClauseFunction = field(repr=False, compare=False)
    needs: tuple[Need, ...] = ()
    after: tuple[str, ...] = ()
    evidence: Evidence = Evidence.EXAMPLE
    time_limit: timedelta = DEFAULT_TIME_LIMIT
    options: Options = DEFAULT_OPTIONS

    @property
    def port(self) -> Port:
        return Port(self.id.partition("-")[0])

    @property
    def area(self) -> str:
        return self.id.split("-")[1]

    @property
    def capabilities(self) -> tuple[type, ...]:
        return tuple(need for need in self.needs if isinstance(need, type))

    @property
    def requirements(self) -> tuple[Requires, ...]:
        return tuple(need for need in self.needs if isinstance(need, Requires))


def name_of(need: Need) -> str:
    """How a need is written in reports: ``SupportsDefer``, ``serves=honoured``."""
    return need.__name__ if isinstance(need, type) else str(need)
