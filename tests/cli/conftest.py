"""Databases to type commands against."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.cli.support import Shell
from tests.worked_examples.examples import call, event, job, run, stage
from workflow_adapters import Adapters, Status, UpdateRunInput, open_adapters


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    return Shell(f"sqlite:///{tmp_path}/cli.db")


@pytest.fixture
def shell(empty: Shell) -> Shell:
    """A database with two runs, three jobs, a dead letter and a model call."""

    async def fill() -> None:
        async with open_adapters(empty.url) as adapters:
            await adapters.migrate()
            await _fill(adapters)

    anyio.run(fill)
    return empty


async def _fill(adapters: Adapters) -> None:
    await adapters.persistence.create_run(run("r1"))
    await adapters.persistence.create_stage(stage("r1", "s1"))
    await adapters.persistence.create_run(run("r2", workflow_id="other"))
    await adapters.persistence.update_run("r2", UpdateRunInput(status=Status.COMPLETED))
    await adapters.job_queue.enqueue_parallel([job("s1", priority=9), job("s2"), job("s3")])
    claimed = await adapters.job_queue.dequeue()
    assert claimed is not None
    await adapters.job_queue.fail(claimed.job_id, "boom [bold]", fence=claimed.fence)
    await adapters.persistence.append_outbox_events([event("r1"), event("r1")])
    dead, _ = await adapters.persistence.get_unpublished_outbox_events()
    await adapters.persistence.move_outbox_event_to_dlq(dead.id)
    adapters.ai_call_logger.log_call(call("docs/a", cost=0.1))
    adapters.ai_call_logger.log_call(call("docs/b", cost=0.2))
