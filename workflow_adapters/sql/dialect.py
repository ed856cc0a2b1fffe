"""The statements that differ from database to database, each as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.records.status import Status
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.statement import Argument, Operation, Row, Statement

Values: TypeAlias = "tuple[Argument, ...]"
"""What one row of a bulk insert holds, in the order that the statement's docstring gives."""


class Dialect(Protocol):
    """Whole statements, written for one database each, where one text can not serve both."""

    def claim_next_pending_run(self, now: datetime, serves: Sequence[ServedDefinition] | None) -> Statement:
        """Take the next PENDING run and return its ``@run.columns``. Waits for no lock and takes one run at most."""
        ...

    def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> Statement:
        """Rows of (run id, workflow type, status, stage id or null), a row per stage, in the order of the listing."""
        ...

    def get_suspended_stages(self, before: datetime, limit: int, serves: Sequence[ServedDefinition]) -> Statement:
        """The ``@stage.columns`` of due SUSPENDED stages of the runs that `serves` serves."""
        ...

    def append_annotations(
        self, now: datetime, rows: Sequence[Values], run_ids: Sequence[str], stage_ids: Sequence[str]
    ) -> Statement:
        """Store a batch in order, if all these runs and stages exist; returns the id of each row that was stored.

        A row is (id, run, stage record, attempt, scope, scope id, actor kind, actor id, actor version, key, value,
        payload, idempotency key), JSON as text.
        """
        ...

    def insert_ai_calls(self, rows: Sequence[Values], *, call_costs: bool) -> Sequence[Statement]:
        """Store calls in order, skipping those whose id or (batch_id, request_id) is stored.

        A row is the fields of AICallRecord in their order, JSON as text. Without `call_costs` the schema has no place
        for the six from estimated_cost to reasoning_tokens.
        """
        ...

    def is_recorded(self, batch_id: str) -> Statement:
        """One row, or none: whether a call carries the batch id, in its column or as a string in its metadata."""
        ...

    def sum_ai_calls(self, where: Conditions) -> Operation[Sequence[Row]]:
        """Sums over the calls that meet the conditions, by model key.

        A row is (model key, calls, input tokens, output tokens, cost): the cost is the text of the exact decimal sum of
        the shortest decimal forms of the stored doubles.
        """
        ...

    def queue_stats(self, now: datetime) -> Statement:
        """Rows of (name, number): each status with its jobs, 'due' with when a job became due, 'locked' with a lock.

        The last two are the oldest of their kind, in ms, or null; 'due' may come twice. `now` is for a database that
        does not use its own clock for jobs.
        """
        ...

    def requeue_job(self, job_id: str, now: datetime) -> Statement:
        """FAILED or CANCELLED to PENDING; returns a row if it did. `now` as for queue_stats."""
        ...

    def cancel_job(self, job_id: str, now: datetime) -> Statement:
        """PENDING or SUSPENDED to CANCELLED; returns a row if it did. `now` as for queue_stats."""
        ...

    def list_jobs(self, where: Conditions, limit: int, *, every_job: bool) -> Statement:
        """``@job.columns``, newest first. `every_job`: the conditions name no status and no run."""
        ...

    def purge_jobs(self, finished_before: datetime, limit: int) -> Statement:
        """Delete finished jobs, the oldest first, and return a row for each."""
        ...

    def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> Statement:
        """Delete keys, the oldest first, and return a row for each."""
        ...
