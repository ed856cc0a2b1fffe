"""The conveniences, which stand on the ports of any backend: on the two that need no server."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.memory.inputs import job, run, stage
from workflow_adapters import (
    MISSING,
    Adapters,
    ArtifactType,
    BackendBusyError,
    InvalidValueError,
    ManualClock,
    NotFoundError,
    SaveArtifactInput,
    Status,
    UpdateRunInput,
    UpdateStageInput,
    open_adapters,
)

pytestmark = pytest.mark.asyncio  # aiosqlite knows no other event loop

# Any: a record that might be None is None in no test, and reading on from it says so.
Opening: TypeAlias = Callable[[], Any]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory://", "sqlite:///{path}/conveniences.db"], ids=["memory", "sqlite"])
def opening(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Opening:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Adapters]:
        async with open_adapters(request.param.format(path=tmp_path), clock=clock) as adapters:
            await adapters.migrate()
            yield adapters

    return opened


async def test_runs_by_status_come_oldest_first_whatever_their_priority(opening: Opening, clock: ManualClock) -> None:
    async with opening() as adapters:
        for run_id, priority in (("b", 1), ("a", 9)):
            await adapters.persistence.create_run(run(run_id, priority=priority))
            clock.advance(-timedelta(days=1))
        await adapters.persistence.create_run(run("done"))
        await adapters.persistence.update_run("done", UpdateRunInput(status=Status.COMPLETED))
        assert [r.id for r in await adapters.persistence.get_runs_by_status("PENDING")] == ["a", "b"]


async def test_one_run_is_claimed_once_and_its_version_raised(opening: Opening, clock: ManualClock) -> None:
    async with opening() as adapters:
        await adapters.persistence.create_run(run())
        assert await adapters.persistence.claim_pending_run("r")
        assert not await adapters.persistence.claim_pending_run("r")
        assert not await adapters.persistence.claim_pending_run("unknown")
        claimed = await adapters.persistence.get_run("r")
        assert (claimed.status, claimed.version, claimed.started_at) == (Status.RUNNING, 2, clock.now())


@pytest.mark.parametrize(("changes", "claims"), [(1, True), (19, True), (20, False)])
async def test_a_claim_goes_on_when_the_run_changes_meanwhile_but_not_for_ever(
    opening: Opening, changes: int, claims: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening() as adapters:
        await adapters.persistence.create_run(run())
        read, left = adapters.persistence.get_run, changes

        async def get_run(run_id: str) -> Any:
            nonlocal left
            found = await read(run_id)
            if left:
                left -= 1
                await adapters.persistence.update_run(run_id, UpdateRunInput())
            return found

        monkeypatch.setattr(adapters.persistence, "get_run", get_run)
        if claims:
            assert await adapters.persistence.claim_pending_run("r")
        else:
            with pytest.raises(BackendBusyError, match="changed 20 times"):
                await adapters.persistence.claim_pending_run("r")


async def with_stages(adapters: Any) -> dict[str, str]:
    """Stages in an order that is neither that of their names nor that of their making; returns their record ids."""
    await adapters.persistence.create_run(run())
    ids: dict[str, str] = {}
    for group, number, status in (
        (2, 1, Status.COMPLETED),
        (1, 2, Status.COMPLETED),
        (1, 1, Status.FAILED),
        (3, 1, Status.FAILED),
        (1, 3, Status.SUSPENDED),
        (2, 2, Status.SUSPENDED),
    ):
        name = f"{group}.{number}"
        created = await adapters.persistence.create_stage(
            stage(name, execution_group=group, stage_number=number, status=status)
        )
        ids[name] = created.id
    return ids


async def test_stages_are_found_by_their_place_in_the_run(opening: Opening, clock: ManualClock) -> None:
    async with opening() as adapters:
        ids = await with_stages(adapters)
        p = adapters.persistence
        await p.update_stage(ids["1.3"], UpdateStageInput(next_poll_at=clock.now()))
        assert (await p.get_stage_by_id(ids["1.2"])).stage_id == "1.2"
        assert await p.get_stage_by_id("unknown") is None
        assert (await p.get_first_failed_stage("r")).stage_id == "1.1"
        assert (await p.get_last_completed_stage("r")).stage_id == "2.1"
        assert (await p.get_last_completed_stage_before("r", 2)).stage_id == "1.2"
        assert await p.get_last_completed_stage_before("r", 1) is None
        assert (await p.get_first_suspended_stage_ready_to_resume("r")).stage_id == "2.2"
        for find in (p.get_first_failed_stage, p.get_last_completed_stage, p.get_first_suspended_stage_ready_to_resume):
            assert await find("unknown") is None


async def test_a_stage_is_updated_by_its_pair(opening: Opening) -> None:
    async with opening() as adapters:
        await with_stages(adapters)
        patch = UpdateStageInput(error_message="e")
        await adapters.persistence.update_stage_by_run_and_stage_id("r", "1.1", patch)
        updated = await adapters.persistence.get_stage("r", "1.1")
        assert (updated.error_message, updated.version) == ("e", 2)
        with pytest.raises(NotFoundError) as caught:
            await adapters.persistence.update_stage_by_run_and_stage_id("r", "x", patch)
        assert (caught.value.entity, caught.value.id) == ("stage", "r/x")


async def test_artifacts_are_replaced_under_their_key(opening: Opening, clock: ManualClock) -> None:
    async with opening() as adapters:
        ids = await with_stages(adapters)
        p = adapters.persistence
        first = SaveArtifactInput(workflow_run_id="r", key="k", type=ArtifactType.ARTIFACT, data={"ü": 1})
        await p.save_artifact(first)
        (stored,) = await p.list_artifacts("r")
        assert (stored.size, stored.created_at, stored.workflow_stage_id) == (
            len('{"ü":1}'.encode()),
            clock.now(),
            None,
        )
        later = clock.advance(timedelta(days=1))
        await p.save_artifact(
            SaveArtifactInput(
                workflow_run_id="r",
                key="k",
                type=ArtifactType.METADATA,
                data=None,
                size=7,
                workflow_stage_id=ids["1.1"],
                metadata=[1],
            )
        )
        (replaced,) = await p.list_artifacts("r")
        assert (replaced.id, replaced.created_at, replaced.updated_at) == (stored.id, stored.created_at, later)
        assert (replaced.type, replaced.size, replaced.metadata) == (ArtifactType.METADATA, 7, [1])
        assert await p.load_artifact("r", "k") is None
        assert await p.load_artifact("r", "other") is MISSING
        await p.delete_stage(ids["1.1"])
        assert (await p.get_artifact("r", "k")).workflow_stage_id is None
        assert await p.has_artifact("r", "k")
        await p.delete_artifact("r", "k")
        await p.delete_artifact("r", "k")
        assert not await p.has_artifact("r", "k")


async def test_an_artifact_needs_its_run_and_stage(opening: Opening) -> None:
    async with opening() as adapters:
        await with_stages(adapters)
        for parent, missing in (({"workflow_run_id": "x"}, "run"), ({"workflow_stage_id": "x"}, "stage")):
            artifact = SaveArtifactInput(
                **{"workflow_run_id": "r", "key": "k", "type": ArtifactType.ARTIFACT, "data": 1, **parent}
            )
            with pytest.raises(NotFoundError) as caught:
                await adapters.persistence.save_artifact(artifact)
            assert (caught.value.entity, caught.value.id) == (missing, "x")
        assert await adapters.persistence.list_artifacts("r") == []


async def test_a_stages_output_is_an_artifact_with_the_engines_key(opening: Opening) -> None:
    async with opening() as adapters:
        ids = await with_stages(adapters)
        p = adapters.persistence
        key = await p.save_stage_output("r", "type", "1.1", {"a": 1})
        assert key == "workflow-v2/type/r/1.1/output.json"
        artifact = await p.get_artifact("r", key)
        assert (artifact.type, artifact.data) == (ArtifactType.STAGE_OUTPUT, {"a": 1})
        assert artifact.workflow_stage_id == ids["1.1"] == await p.get_stage_id_for_artifact("r", "1.1")
        assert await p.get_stage_id_for_artifact("r", "x") is None
        await p.save_stage_output("r", "type", "x", None)
        with pytest.raises(InvalidValueError, match=r"output\.n: NaN"):
            await p.save_stage_output("r", "type", "1.1", {"n": float("nan")})


async def test_one_job_is_enqueued_like_many(opening: Opening) -> None:
    async with opening() as adapters:
        job_id = await adapters.job_queue.enqueue(job())
        assert (await adapters.operations.get_job(job_id)).stage_id == "s"


async def test_conveniences_are_there_in_a_transaction(opening: Opening) -> None:
    async with opening() as adapters:
        async with adapters.transaction() as tx:
            await tx.persistence.create_run(run())
            await tx.persistence.save_stage_output("r", "t", "s", 1)
            await tx.job_queue.enqueue(job())
        assert len(await adapters.persistence.list_artifacts("r")) == 1
