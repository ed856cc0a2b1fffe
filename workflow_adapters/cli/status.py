"""``status``: what an operator looks at first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import anyio
import typer
from rich.console import Group
from rich.live import Live

from workflow_adapters.cli.options import Json, Schema, Url, on_adapters
from workflow_adapters.cli.output import console, print_json, table
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.operations import OutboxStats, QueueStats
from workflow_adapters.records.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything ``status`` shows, at one instant."""

    at: datetime
    runs: dict[Status, int]
    queue: QueueStats
    outbox: OutboxStats


async def look(adapters: Adapters) -> Overview:
    runs: Counter[Status] = Counter()
    for count in await adapters.persistence.count_runs_by_definition_version():
        runs[count.status] += count.count
    return Overview(
        at=datetime.now(UTC),
        runs={status: runs[status] for status in Status},
        queue=await adapters.operations.queue_stats(),
        outbox=await adapters.operations.outbox_stats(),
    )


def shown(overview: Overview) -> Group:
    by_status = [
        (status, overview.runs[status], overview.queue.by_status[status])
        for status in Status
        if overview.runs[status] or overview.queue.by_status[status]
    ]
    queue, outbox = overview.queue, overview.outbox
    waits = [
        ("oldest due job", _age(queue.oldest_due_at, overview.at)),
        ("oldest heartbeat", _age(queue.oldest_locked_at, overview.at)),
        ("unpublished events", outbox.unpublished),
        ("oldest of them", _age(outbox.oldest_unpublished_at, overview.at)),
        ("leased events", outbox.leased),
        ("dead letters", outbox.dead),
    ]
    return Group(
        table("Runs and jobs", ["status", "runs", "jobs"], by_status or [("none", 0, 0)]),
        table(f"At {overview.at:%Y-%m-%d %H:%M:%S} UTC", ["what", "value"], waits),
    )


def _age(instant: datetime | None, now: datetime) -> str | None:
    if instant is None:
        return None
    seconds = max((now - instant).total_seconds(), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit} ago"
    return f"{seconds:.1f} s ago"


def status(
    url: Url = None,
    schema: Schema = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again until interrupted.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two looks.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Show runs, jobs, the outbox and dead letters."""

    async def work(adapters: Adapters) -> None:
        overview = await look(adapters)
        if as_json and not watch:
            print_json(overview)
        elif not watch:
            console.print(shown(overview))
        else:
            await _watch(adapters, overview)

    async def _watch(adapters: Adapters, overview: Overview) -> None:
        with Live(shown(overview), console=console, auto_refresh=False) as live:
            while True:
                await anyio.sleep(every)
                overview = await look(adapters)
                if as_json:
                    print_json(overview)
                else:
                    live.update(shown(overview), refresh=True)

    on_adapters(url, schema, work)
