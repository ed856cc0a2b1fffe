"""``jobs list``, ``show``, ``requeue`` and ``cancel``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from workflow_adapters.cli.options import After, Json, Limit, Schema, Url, fail, on_adapters
from workflow_adapters.cli.output import console, print_json, record, show, show_page, table
from workflow_adapters.inputs.operations import DEFAULT_PAGE, JobFilters
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.operations import Page
from workflow_adapters.records.status import Status

jobs = typer.Typer(no_args_is_help=True, help="Jobs of the queue.")

JobId = Annotated[str, typer.Argument(help="The job's id.")]


@jobs.command("list")
def list_jobs(
    url: Url = None,
    schema: Schema = None,
    status: Annotated[Status | None, typer.Option("--status", case_sensitive=False)] = None,
    run_id: Annotated[str | None, typer.Option("--run-id")] = None,
    after: After = None,
    limit: Limit = DEFAULT_PAGE,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""

    async def work(adapters: Adapters) -> Page[JobRecord]:
        return await adapters.operations.list_jobs(JobFilters(status=status, workflow_run_id=run_id), after, limit)

    page = on_adapters(url, schema, work)
    rows = [
        (j.id, j.workflow_run_id, j.stage_id, j.status, j.priority, f"{j.attempt}/{j.max_attempts}", j.last_error)
        for j in page.items
    ]
    columns = ["id", "run", "stage", "status", "priority", "attempt", "last error"]
    show_page(page, as_json=as_json, shown=table("Jobs", columns, rows))


@jobs.command("show")
def show_job(job_id: JobId, url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Show one job with its payload."""

    async def work(adapters: Adapters) -> JobRecord | None:
        return await adapters.operations.get_job(job_id)

    job = on_adapters(url, schema, work)
    if job is None:
        fail(f"job {job_id!r} does not exist", 1)
    show(job, as_json=as_json, tables=[record("Job", job)])


@jobs.command("requeue")
def requeue_job(job_id: JobId, url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Make a FAILED or CANCELLED job PENDING again, with all its attempts."""
    _change(
        job_id,
        url,
        schema,
        lambda a: a.operations.requeue_job(job_id),
        "requeued",
        "FAILED or CANCELLED",
        as_json=as_json,
    )


@jobs.command("cancel")
def cancel_job(job_id: JobId, url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Cancel a PENDING or SUSPENDED job."""
    _change(
        job_id,
        url,
        schema,
        lambda a: a.operations.cancel_job(job_id),
        "cancelled",
        "PENDING or SUSPENDED",
        as_json=as_json,
    )


def _change(
    job_id: str,
    url: str | None,
    schema: str | None,
    change: Callable[[Adapters], Awaitable[bool]],
    done: str,
    needed: str,
    *,
    as_json: bool,
) -> None:
    async def work(adapters: Adapters) -> tuple[bool, JobRecord | None]:
        changed = await change(adapters)
        return changed, await adapters.operations.get_job(job_id)

    changed, job = on_adapters(url, schema, work)
    if as_json:
        print_json({"job_id": job_id, done: changed, "status": None if job is None else job.status})
    elif changed:
        console.print(f"job {job_id} is {done}")
    if not changed:
        state = "does not exist" if job is None else f"is {job.status}, not {needed}"
        fail(f"job {job_id!r} {state}", 1)
