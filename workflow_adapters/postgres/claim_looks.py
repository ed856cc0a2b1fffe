"""Which statements a claim consists of, by schema and fairness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from workflow_adapters.errors import UsageError
from workflow_adapters.inputs.job_queue import GROUP_KEY_MEMBER, JobQueueFairness
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.postgres.claim_answer import ClaimAnswer, claim, read_answer
from workflow_adapters.postgres.claims import claim_any, claim_known, claim_served
from workflow_adapters.postgres.claims_reference import (
    claim_fairly_from_reference,
    claim_from_reference,
    take_turn,
)
from workflow_adapters.postgres.database import PostgresDatabase
from workflow_adapters.postgres.fairness import claim_any_fairly, claim_served_fairly
from workflow_adapters.postgres.fairness_deep import claim_deep_fairly, claim_known_fairly
from workflow_adapters.postgres.lanes import lanes_of
from workflow_adapters.postgres.lookahead import Lookahead, Recall
from workflow_adapters.sql.statement import Operation, Statement

Serves = Sequence[ServedDefinition] | None


class Looks(ABC):
    """The statements of one claimer."""

    remembers = True
    """Whether `known` can be asked: a claim of what was seen keeps every rule that a look keeps."""

    def __init__(self, database: PostgresDatabase, worker_id: str, serves: Serves) -> None:
        self._database = database
        self._worker_id = worker_id
        self._serves = serves

    @abstractmethod
    async def look(self, limit: int, window: int, lookahead: Lookahead) -> ClaimAnswer:
        """Claim at most `limit` jobs. `window` bounds what is looked at; candidates besides are for the lookahead."""

    async def known(self, limit: int, recall: Recall) -> ClaimAnswer:
        """Claim at most `limit` of the jobs that were seen before."""
        return await self._claim(claim_known(self._worker_id, limit, [seen.id for seen in recall.ids]))

    async def _claim(self, statement: Statement) -> ClaimAnswer:
        self._database.watch_plan(statement.text)
        return await self._database.write(lambda: claim(statement), single=True)


class OwnLooks(Looks):
    """On a schema of ours."""

    async def look(self, limit: int, window: int, lookahead: Lookahead) -> ClaimAnswer:
        wanted = lookahead.wanted if lookahead.is_costly else 0
        if self._serves is None:
            return await self._claim(claim_any(self._worker_id, limit, wanted, window))
        return await self._claim(claim_served(self._worker_id, limit, wanted, window, lanes_of(self._serves)))


class OwnFairLooks(Looks):
    """On a schema of ours, with a cap by `_groupKey`."""

    def __init__(self, database: PostgresDatabase, worker_id: str, serves: Serves, cap: int) -> None:
        super().__init__(database, worker_id, serves)
        self._cap = cap

    async def look(self, limit: int, window: int, lookahead: Lookahead) -> ClaimAnswer:
        wanted = lookahead.wanted if lookahead.is_costly else 0
        lanes = None if self._serves is None else lanes_of(self._serves)
        if lanes is None:
            head = await self._claim(claim_any_fairly(self._worker_id, limit, wanted, window, self._cap))
        else:
            head = await self._claim(claim_served_fairly(self._worker_id, limit, wanted, window, self._cap, lanes))
        if head.took or not head.more:
            return head
        deep = await self._claim(claim_deep_fairly(self._worker_id, limit, lookahead.wanted, self._cap, lanes))
        return deep._replace(costly=True)

    async def known(self, limit: int, recall: Recall) -> ClaimAnswer:
        ids = [seen.id for seen in recall.ids]
        return await self._claim(claim_known_fairly(self._worker_id, limit, ids, self._cap, recall.parts))


class ReferenceLooks(Looks):
    """On the bare reference schema."""

    async def look(self, limit: int, window: int, lookahead: Lookahead) -> ClaimAnswer:
        wanted = lookahead.wanted if lookahead.is_costly else 0
        return await self._claim(claim_from_reference(self._worker_id, limit, wanted, window, self._serves))


class ReferenceFairLooks(Looks):
    """With a cap, where neither lanes nor groups are stored with the job: in a transaction, one claim at a time.

    Nothing is remembered: of a job seen before, neither its group nor the room in it can be told by its row.
    """

    remembers = False

    def __init__(
        self,
        database: PostgresDatabase,
        worker_id: str,
        serves: Serves,
        fairness: JobQueueFairness,
        *,
        insertion_order: bool,
    ) -> None:
        super().__init__(database, worker_id, serves)
        self._fairness = fairness
        self._insertion_order = insertion_order

    async def look(self, limit: int, window: int, lookahead: Lookahead) -> ClaimAnswer:
        statement = claim_fairly_from_reference(
            self._worker_id,
            limit,
            window,
            self._serves,
            self._fairness.max_concurrent_per_group,
            self._fairness.path,
            insertion_order=self._insertion_order,
        )

        def operation() -> Operation[ClaimAnswer]:
            ((isolation, _),) = yield take_turn(self._fairness.path)
            if isolation != "read committed":
                # The claim would count what was RUNNING before its turn came.
                raise UsageError(
                    f"fairness by this path, on this schema, needs READ COMMITTED; the transaction is {isolation}"
                )
            return read_answer((yield statement))

        return await self._database.write(operation)


def looks_for(
    database: PostgresDatabase, worker_id: str, serves: Serves, fairness: JobQueueFairness | None, *, owned: bool
) -> Looks:
    """The statements that a schema and a fairness option call for."""
    if fairness is None:
        return (OwnLooks if owned else ReferenceLooks)(database, worker_id, serves)
    if owned and fairness.path == (GROUP_KEY_MEMBER,):
        return OwnFairLooks(database, worker_id, serves, fairness.max_concurrent_per_group)
    return ReferenceFairLooks(database, worker_id, serves, fairness, insertion_order=owned)
