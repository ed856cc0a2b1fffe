"""What a clause is handed: the adapter, more of them on the same store, ids, time, and expectations."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, cast
from uuid import uuid4

from conformance import builders, concurrency
from conformance.answers import answers_of, capabilities_of, members_missing, protocol_of
from conformance.backend import Env, Fixture, Spec
from conformance.clause import Clause, Parameters, Port
from conformance.expectations import Expectation, Raises
from conformance.instance import FixtureError
from conformance.outcome import ClauseFailedError, ClauseSkippedError, Failure, HarnessError, Outcome
from conformance.recording import History, Recorded
from conformance.wording import Wording
from workflow_adapters.clock import truncate_to_ms
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

A = TypeVar("A")
T = TypeVar("T")
V = TypeVar("V")
E = TypeVar("E", bound=BaseException)

# More than the clocks of two machines are apart, and less than time zones are.
_CLOCKS_APART: Final = timedelta(minutes=10)


class Stand(Protocol):
    """Where a clause's adapters come from."""

    @property
    def spec(self) -> Spec: ...

    @property
    def env(self) -> Env: ...

    async def instance(self, number: int) -> Fixture[Any]:
        """The `number`-th adapter of the clause's store, opened when it is first asked for."""
        ...


class Context(Generic[A]):
    """One trial of one clause. `adapter` and its like record their calls for the timeline of a failure."""

    adapter: A

    def __init__(self, clause: Clause, stand: Stand, fixture: Fixture[Any]) -> None:
        self.clause = clause
        self.checks = 0
        self.failure: Failure | None = None
        self.random = random.Random(f"{stand.env.seed}/{clause.id}")
        self.parent_ids: list[str] = []
        """Runs and stages that were made, or named, for the clause's rows."""
        self._stand = stand
        self._fixture = fixture
        self._made: dict[str, int] = {}
        self._shifted = timedelta(0)
        self.wording = Wording(self.now())
        self.history = History(self.wording, answers_of(clause.port), self._refuse_answer)
        self.adapter = self._record(fixture, "A")

    async def second(self) -> A:
        """A second adapter on the same store: the other worker."""
        return (await self.instances(2))[1]

    async def instances(self, count: int) -> list[A]:
        """`count` adapters on the same store; the first is `adapter`."""
        others = [await self._stand.instance(number) for number in range(1, count)]
        return [self.adapter, *(self._record(other, chr(ord("B") + place)) for place, other in enumerate(others))]

    def capability(self, kind: type[V], of: A | None = None) -> V:
        """The adapter as one of the capabilities that the clause needs."""
        if kind not in self.clause.needs:
            raise HarnessError(f"{self.clause.id} uses {kind.__name__} and does not need it")
        return cast("V", self.adapter if of is None else of)

    def undeclared_capabilities(self) -> list[str]:
        """What the adapter has all methods of, and neither promises nor names as a gap."""
        spec = self._stand.spec
        known = {kind.__name__: kind for kind in capabilities_of(spec.port) if kind not in spec.promised}
        return [
            name
            for name, kind in known.items()
            if name not in spec.gaps and not members_missing(self._fixture.adapter, kind)
        ]

    def missing_methods(self) -> list[str]:
        """Methods of the port, and of what is promised beyond it, that the adapter does not have."""
        spec = self._stand.spec
        needed = [protocol_of(spec.port), *(kind for kind in capabilities_of(spec.port) if kind in spec.promised)]
        return [name for kind in needed for name in members_missing(self._fixture.adapter, kind)]

    @property
    def parameters(self) -> Parameters:
        """What is declared of the adapter."""
        return self._stand.spec.parameters

    def new_id(self, what: str) -> str:
        """A fresh id that reads as `what` in failures. Nothing is stored."""
        number = self._made[what] = self._made.get(what, 0) + 1
        fresh = f"{what}-{number}-{uuid4().hex[:8]}"
        self.wording.name(fresh, f"{what}-{number}")
        self.parent_ids.append(fresh)
        return fresh

    def may_name_run(self) -> bool:
        """Whether a run's id may be any text: the fixture makes no runs, so there are none to be found."""
        return self._fixture.new_run is None

    def may_name_stage(self) -> bool:
        """Whether a stage's record id may be any text: the fixture makes no stages."""
        return self._fixture.new_stage is None

    async def new_run(self) -> str:
        """The id of a run that exists, where runs exist."""
        if self.clause.port is Port.WORKFLOW_PERSISTENCE:
            run = builders.run(id=self.new_id("run"))
            return (await cast("WorkflowPersistence", self.adapter).create_run(run)).id
        return await self._made_by(self._fixture.new_run, "run")

    async def new_stage(self) -> str:
        """The record id of a stage that exists, where stages exist, in a run of its own."""
        if self.clause.port is Port.WORKFLOW_PERSISTENCE:
            stage = builders.stage(await self.new_run())
            return (await cast("WorkflowPersistence", self.adapter).create_stage(stage)).id
        return await self._made_by(self._fixture.new_stage, "stage-record")

    async def _made_by(self, make: Callable[[], Awaitable[str]] | None, what: str) -> str:
        if make is None:
            return self.new_id(what)
        made = await _offered(f"new_{what.removesuffix('-record')}", make())
        self._made[what] = self._made.get(what, 0) + 1
        self.wording.name(made, f"{what}-{self._made[what]}")
        self.parent_ids.append(made)
        return made

    async def store_payload(self, job_id: str, payload: JsonValue) -> None:
        """Overwrite a job's stored payload past every check; NOT_APPLICABLE where the fixture can not."""
        if self._fixture.store_payload is None:
            self.not_applicable("the fixture offers no store_payload")
        await _offered("store_payload", self._fixture.store_payload(job_id, payload))

    def now(self) -> datetime:
        """The instant at which the adapter stamps; with ``clock="database"`` only about that."""
        if self.parameters.clock == "caller":
            return self._stand.env.clock.now()
        return truncate_to_ms(datetime.now(UTC) + self._shifted)

    async def advance(self, delta: timedelta) -> None:
        """Make time pass; NOT_APPLICABLE where the clock is the database's and the fixture can not shift it."""
        if self.parameters.clock == "caller":
            self._stand.env.clock.advance(delta)
        elif self._fixture.shift_clock is not None:
            await _offered("shift_clock", self._fixture.shift_clock(delta))
            self._shifted += delta
        else:
            self.not_applicable('time can not be set: clock="database" and the fixture offers no shift_clock')

    def expect_now(self, subject: str, stamp: datetime | None) -> None:
        """The stamp is this instant, in UTC and whole milliseconds; by a database's clock about this instant."""
        present = self.expect(subject, stamp).is_not_none()
        if self.parameters.clock == "caller":
            self.expect(subject, present).equals(self.now())
        else:
            self.expect(subject, present).satisfies(
                "within ten minutes of this machine's clock", lambda at: abs(at - self.now()) < _CLOCKS_APART
            )
        self.expect(subject, present).satisfies(
            "an instant in UTC, in whole milliseconds",
            lambda at: at.utcoffset() == timedelta(0) and at.microsecond % 1000 == 0,
        )

    async def together(self, *calls: Callable[[], Awaitable[T]]) -> list[T]:
        """Make the calls at the same time and return their answers, in order. An error of one ends the clause."""
        return await concurrency.together(*calls)

    async def settled(self, *calls: Callable[[], Awaitable[T]]) -> list[T | Exception]:
        """As `together`, with errors in their places among the answers."""
        return await concurrency.settled(*calls)

    def expect(self, subject: str, observed: V, because: str | None = None) -> Expectation[V]:
        """Begin a comparison; `because` replaces the sentence that a failure would say."""
        return Expectation(self, subject, observed, because)

    def raises(self, kind: type[E], subject: str, **attributes: object) -> Raises[E]:
        """The block must raise `kind` with these attributes."""
        return Raises(self, kind, subject, attributes)

    def fail(self, contradiction: str, *, expected: str, observed: str) -> NoReturn:
        """End the clause as not met."""
        failure = Failure(
            expected=expected, observed=observed, contradiction=contradiction, history=self.history.events()
        )
        # An adapter that swallows the exception must not swallow the verdict.
        self.failure = self.failure or failure
        raise ClauseFailedError(failure)

    def not_applicable(self, reason: str) -> NoReturn:
        """End the clause as one that this adapter, as declared, can not be judged by."""
        raise ClauseSkippedError(Outcome.NOT_APPLICABLE, reason)

    def count(self) -> None:
        self.checks += 1

    def _refuse_answer(self, contradiction: str, expected: str, observed: str) -> None:
        self.fail(contradiction, expected=expected, observed=observed)

    def _record(self, fixture: Fixture[Any], instance: str) -> A:
        return cast("A", Recorded(fixture.adapter, instance, self.history))


async def _offered(name: str, answer: Awaitable[T]) -> T:
    """What the fixture offers is not the adapter: an error of it is nobody's verdict."""
    try:
        return await answer
    except Exception as error:
        raise FixtureError(f"{name} raised {type(error).__name__}: {error}") from error
