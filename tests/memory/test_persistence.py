"""Rules of runs, stages, annotations and keys that are easy to get wrong."""

from datetime import timedelta

import pytest

from tests.memory.inputs import START, annotation, run, stage
from workflow_adapters import (
    Acquired,
    CreateLogInput,
    JobAckOutcome,
    LogLevel,
    ManualClock,
    NewStep,
    Replay,
    ServedDefinition,
    Status,
    StepKind,
    StepStatus,
    UpdateRunInput,
    UpdateStageInput,
    open_memory,
)

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)


async def test_deleting_a_stage_clears_references_to_it_and_to_no_other_stage() -> None:
    async with open_memory() as adapters:
        p = adapters.persistence
        for run_id in ("r", "other"):
            await p.create_run(run(run_id))
        gone, kept = await p.create_stage(stage("gone")), await p.create_stage(stage("kept"))
        # An annotation may name a stage of another run.
        await p.append_annotations(
            [
                annotation("gone", workflow_stage_record_id=gone.id),
                annotation("kept", workflow_stage_record_id=kept.id),
                annotation("gone", run_id="other", workflow_stage_record_id=gone.id),
            ]
        )
        for stage_record in (gone, kept):
            step = NewStep(
                stage_record_id=stage_record.id, step_id="a", seq=1, kind=StepKind.RUN, status=StepStatus.RUNNING
            )
            await adapters.step_ledger.claim(step)
            await p.create_log(
                CreateLogInput(
                    level=LogLevel.INFO,
                    message=stage_record.stage_id,
                    workflow_run_id="r",
                    workflow_stage_id=stage_record.id,
                )
            )
        await p.delete_stage(gone.id)
        notes = await p.list_annotations("r")
        assert [note.workflow_stage_record_id for note in notes] == [None, kept.id]
        assert [note.workflow_stage_record_id for note in await p.list_annotations("other")] == [None]
        assert [len(await adapters.step_ledger.list(s.id)) for s in (gone, kept)] == [0, 1]
        assert [log.message for log in (await adapters.operations.list_logs("r")).items] == ["kept"]


async def test_a_run_is_stuck_only_if_its_stages_are_quiet_too() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        p = adapters.persistence
        for run_id in ("b", "a", "busy"):
            await p.create_run(run(run_id))
            await p.update_run(run_id, UpdateRunInput(status=Status.RUNNING))
        quiet_since = clock.now()
        clock.advance(SECOND)
        await p.create_stage(stage(run_id="busy"))
        assert [r.id for r in await p.get_stuck_runs(quiet_since)] == ["a", "b"]
        assert [r.id for r in await p.get_stuck_runs(clock.now())] == ["a", "b", "busy"]
        assert await p.get_stuck_runs(quiet_since - SECOND) == []


async def test_suspended_stages_are_due_oldest_first_and_only_for_who_serves_their_run() -> None:
    async with open_memory() as adapters:
        p = adapters.persistence
        await p.create_run(run("pinned", definition_version="2"))
        await p.create_run(run("free"))
        for run_id, due in (("free", START + SECOND), ("pinned", START), ("free", None), ("free", START + 3 * SECOND)):
            created = await p.create_stage(stage(f"{run_id} {due}", run_id=run_id))
            await p.update_stage(created.id, UpdateStageInput(status=Status.SUSPENDED, next_poll_at=due))
        cases = [(None, ["pinned", "free"]), ([], []), (["1"], ["free"]), (["2"], ["pinned", "free"])]
        for versions, expected in cases:
            serves = None if versions is None else [ServedDefinition(workflow_id="w", version=v) for v in versions]
            due_stages = await p.get_suspended_stages(START + SECOND, serves=serves)
            assert [s.workflow_run_id for s in due_stages] == expected
        assert len(await p.get_suspended_stages(START + 9 * SECOND, 2)) == 2


async def test_a_fence_holds_no_longer_than_its_acquisition() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        p = adapters.persistence
        fences = []
        for _ in range(2):
            held = await p.acquire_idempotency_key("k", "c", stale_in_progress_after=timedelta(0))
            assert isinstance(held, Acquired)
            fences.append(held.fence)
        assert [fence.acquired_at for fence in fences] == [START + timedelta(milliseconds=n) for n in range(2)]
        for fence in fences[:-1]:
            assert await p.release_idempotency_key("k", "c", fence) is JobAckOutcome.SUPERSEDED
            assert await p.complete_idempotency_key("k", "c", "late", fence) is JobAckOutcome.SUPERSEDED
        assert await p.complete_idempotency_key("k", "c", None, fences[-1]) is JobAckOutcome.ACKNOWLEDGED
        for result in ("again", None):
            assert await p.complete_idempotency_key("k", "c", result, fences[-1]) is JobAckOutcome.SUPERSEDED
        assert await p.release_idempotency_key("k", "c", fences[-1]) is JobAckOutcome.SUPERSEDED
        assert await p.release_idempotency_key("k", "c") is JobAckOutcome.ACKNOWLEDGED
        assert await p.acquire_idempotency_key("k", "c", stale_in_progress_after=timedelta(0)) == Replay(None)
