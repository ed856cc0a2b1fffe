"""create_log. The port has no way to read logs back; what a log needs of its run and stage is seen from outside."""

from __future__ import annotations

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import new_stage
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import LogLevel


@clause(
    "WP-LOG-01",
    MUST,
    text="create_log takes a line of any level, of a run, of a stage, of both, or of neither.",
    why="A log line that is refused takes the work down that it was to tell about.",
    hints=["Both references may be null."],
    after=["WP-STAGE-01"],
)
async def every_kind(ctx: Context[WorkflowPersistence]) -> None:
    stage = await new_stage(ctx)
    for level in LogLevel:
        for run_id in (None, stage.workflow_run_id):
            for stage_id in (None, stage.id):
                line = CreateLogInput(
                    level=level,
                    message="\U0001f600 'quoted'\n",
                    workflow_run_id=run_id,
                    workflow_stage_id=stage_id,
                    metadata={"a": [1]},
                )
                ctx.expect(f"create_log at {level}", await ctx.adapter.create_log(line)).is_none()


@clause(
    "WP-LOG-02",
    MUST,
    text="create_log for a run that does not exist raises NotFoundError with the run's id.",
    why="The line would be found by nobody, and purged by nothing.",
    hints=["Name the parent that is missing."],
)
async def unknown_run(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("no-run")
    with ctx.raises(NotFoundError, "create_log for an unknown run", id=run_id):
        await ctx.adapter.create_log(CreateLogInput(level=LogLevel.INFO, message="x", workflow_run_id=run_id))


@clause(
    "WP-LOG-03",
    MUST,
    text="create_log for a stage that does not exist raises NotFoundError with the stage's id, whatever the run.",
    why="The host has to know which of its two ids is wrong.",
    hints=["Two foreign keys: tell from the constraint's name which one failed, or look."],
    after=["WP-RUN-01"],
)
async def unknown_stage(ctx: Context[WorkflowPersistence]) -> None:
    run_id, record_id = await ctx.new_run(), ctx.new_id("no-stage")
    line = CreateLogInput(level=LogLevel.INFO, message="x", workflow_run_id=run_id, workflow_stage_id=record_id)
    with ctx.raises(NotFoundError, "create_log for an unknown stage", id=record_id):
        await ctx.adapter.create_log(line)
