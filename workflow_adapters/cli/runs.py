"""``runs list`` and ``runs show``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from workflow_adapters.cli.options import After, Json, Limit, Schema, Url, fail, on_adapters
from workflow_adapters.cli.output import record, show, show_page, table
from workflow_adapters.inputs.operations import DEFAULT_PAGE, RunFilters
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import Page
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.unset import UNSET

runs = typer.Typer(no_args_is_help=True, help="Workflow runs.")


@runs.command("list")
def list_runs(
    url: Url = None,
    schema: Schema = None,
    status: Annotated[Status | None, typer.Option("--status", case_sensitive=False)] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow-id")] = None,
    definition_version: Annotated[str | None, typer.Option("--definition-version")] = None,
    after: After = None,
    limit: Limit = DEFAULT_PAGE,
    as_json: Json = False,
) -> None:
    """List runs, newest first."""

    async def work(adapters: Adapters) -> Page[WorkflowRunRecord]:
        filters = RunFilters(
            status=status,
            workflow_id=workflow_id,
            definition_version=UNSET if definition_version is None else definition_version,
        )
        return await adapters.operations.list_runs(filters, after, limit)

    page = on_adapters(url, schema, work)
    rows = [(r.id, r.workflow_id, r.status, r.priority, r.created_at, r.completed_at) for r in page.items]
    columns = ["id", "workflow", "status", "priority", "created", "completed"]
    show_page(page, as_json=as_json, shown=table("Runs", columns, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A run with what belongs to it."""

    run: WorkflowRunRecord
    stages: list[WorkflowStageRecord]
    jobs: list[JobRecord]
    logs: tuple[WorkflowLogRecord, ...]


@runs.command("show")
def show_run(
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show a run with its stages, jobs and last log lines."""

    async def work(adapters: Adapters) -> RunDetails | None:
        run = await adapters.persistence.get_run(run_id)
        if run is None:
            return None
        return RunDetails(
            run=run,
            stages=await adapters.persistence.get_stages_by_run(run_id),
            jobs=await adapters.job_queue.get_jobs_by_workflow_run(run_id),
            logs=(await adapters.operations.list_logs(run_id, limit=20)).items,
        )

    details = on_adapters(url, schema, work)
    if details is None:
        fail(f"run {run_id!r} does not exist", 1)
    stage_rows: list[tuple[Any, ...]] = [
        (s.execution_group, s.stage_id, s.status, s.attempt, s.started_at, s.completed_at, s.error_message)
        for s in details.stages
    ]
    job_rows = [(j.id, j.stage_id, j.status, j.attempt, j.worker_id, j.last_error) for j in details.jobs]
    log_rows = [(log.created_at, log.level, log.message) for log in details.logs]
    tables = [
        record("Run", details.run),
        table("Stages", ["group", "stage", "status", "attempt", "started", "completed", "error"], stage_rows),
        table("Jobs", ["id", "stage", "status", "attempt", "worker", "last error"], job_rows),
        table("Last log lines", ["at", "level", "message"], log_rows),
    ]
    show(details, as_json=as_json, tables=tables)
