"""Contract of workflow_stages."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, Protocol, TypeAlias

from workflow_adapters.arguments import checked
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.runs import Serves, serves
from workflow_adapters.inputs.stages import CreateStageInput, UpdateStageInput, UpsertStageInput
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.validation import instance, instant, key, member, non_negative, optional

Order: TypeAlias = Literal["asc", "desc"]
_ORDERS: Final = ("asc", "desc")


def order(field: str, value: object) -> object:
    if value not in _ORDERS:
        raise InvalidValueError(field, field, f"{value!r} is none of asc, desc")
    return value


class Stages(Protocol):
    """Stages of runs, unique on (workflow_run_id, stage_id)."""

    @checked(stage=instance(CreateStageInput))
    async def create_stage(self, stage: CreateStageInput) -> WorkflowStageRecord:
        """Store a stage at version 1; an unset status is PENDING.

        Unknown run: NotFoundError. Taken pair: AlreadyExistsError with the id ``"run/stage"``.
        """
        ...

    @checked(stage=instance(UpsertStageInput))
    async def upsert_stage(self, stage: UpsertStageInput) -> WorkflowStageRecord:
        """Create the stage, or apply `update` to the one that has create's (run, stage) pair, in one statement.

        Creating: an unset status is RUNNING, an unset started_at is now, expected_version is ignored. Updating: every
        given field is written and version raised by one; id, created_at and children survive; an expected_version
        that does not match is a StaleVersionError and nothing is written. Unknown run: NotFoundError.
        """
        ...

    @checked(id=key, patch=instance(UpdateStageInput))
    async def update_stage(self, id: str, patch: UpdateStageInput) -> None:
        """Write the patch, raise `version` by one and set updated_at, on every call.

        StaleVersionError and NotFoundError as for update_run. A suspended stage is claimed this way.
        """
        ...

    @checked(run_id=key, stage_id=key)
    async def get_stage(self, run_id: str, stage_id: str) -> WorkflowStageRecord | None:
        """The stage of the pair, or None."""
        ...

    @checked(run_id=key, status=optional(member(Status)), order=order)
    async def get_stages_by_run(
        self, run_id: str, status: Status | None = None, order: Order = "asc"
    ) -> list[WorkflowStageRecord]:
        """Stages of the run by execution_group, then stage_number, both in the direction of `order`."""
        ...

    @checked(before=instant, limit=optional(non_negative), serves=serves)
    async def get_suspended_stages(
        self, before: datetime, limit: int | None = None, serves: Serves = None
    ) -> list[WorkflowStageRecord]:
        """SUSPENDED stages with next_poll_at <= before, the earliest first (then id), of runs that the caller serves.

        A null next_poll_at is never due. A plain read; `serves` as for claim_next_pending_run.
        """
        ...

    @checked(id=key)
    async def delete_stage(self, id: str) -> None:
        """Delete the stage with its steps and logs; annotations and artifacts stay, their reference cleared.

        Unknown id: no-op.
        """
        ...
