"""``purge``: retention by hand."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeAlias

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from workflow_adapters.cli.options import Json, Schema, Url, on_adapters, span
from workflow_adapters.cli.output import console, print_json, show, table
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.runtime.purger import Purger, Retention

TABLES = ("runs", "jobs", "published_events", "dead_events", "completed_keys", "abandoned_keys", "ai_calls")
DRY_RUN_MOST = 10_000


class _RolledBackError(Exception):
    """Ends a dry run."""


OlderThan: TypeAlias = Annotated[str, typer.Option("--older-than", help="Age of what goes: 90s, 15m, 12h, 30d or 4w.")]
Only: TypeAlias = Annotated[
    list[str] | None, typer.Option("--only", help=f"Just these tables: {', '.join(TABLES)}. May be repeated.")
]
Batch: TypeAlias = Annotated[int, typer.Option("--batch", min=1, max=10_000, help="Rows deleted at once.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help=f"Delete up to {DRY_RUN_MOST:,} rows of each table in a transaction, count them, and roll it back.",
    ),
]


def purge(
    older_than: OlderThan,
    url: Url = None,
    schema: Schema = None,
    only: Only = None,
    batch: Batch = 500,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete what finished long ago: runs with all they own, jobs, events, idempotency keys, model calls.

    Interrupt it at any time; the next one goes on where it was.
    """
    age = span(older_than)
    chosen = set(only or TABLES)
    unknown = chosen - set(TABLES)
    if unknown:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} is none of {', '.join(TABLES)}", param_hint="--only")
    retention = Retention(**{name: age for name in TABLES if name in chosen})

    async def work(adapters: Adapters) -> Counter[str]:
        if dry_run:
            return await _count_only(adapters, retention, batch)
        with _progress(quiet=as_json) as bars:
            return await Purger(adapters, retention, batch=batch).purge(_Bars(bars).advance)

    deleted = on_adapters(url, schema, work)
    if as_json:
        print_json({"dry_run": dry_run, "deleted": {name: deleted[name] for name in TABLES if name in chosen}})
        return
    title = "Would be deleted" if dry_run else "Deleted"
    rows = [(name, _count(deleted[name], dry_run=dry_run)) for name in TABLES if name in chosen]
    show(None, as_json=False, tables=[table(title, ["table", "rows"], rows)])


async def _count_only(adapters: Adapters, retention: Retention, batch: int) -> Counter[str]:
    deleted: Counter[str] = Counter()
    try:
        async with adapters.transaction() as tx:
            deleted = await Purger(tx, retention, batch=batch).purge(most=DRY_RUN_MOST)
            raise _RolledBackError
    except _RolledBackError:
        return deleted


def _count(rows: int, *, dry_run: bool) -> str:
    return f"{DRY_RUN_MOST:,} or more" if dry_run and rows >= DRY_RUN_MOST else f"{rows:,}"


def _progress(*, quiet: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


class _Bars:
    """One bar for each table, growing by batches; how many rows there are in all nobody knows before."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks = {name: progress.add_task(name, total=None) for name in TABLES}

    def advance(self, name: str, rows: int) -> None:
        self._progress.advance(self._tasks[name], rows)
