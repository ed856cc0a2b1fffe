"""``purge``: retention by hand."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, TypeAlias

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from workflow_adapters.cli.dry_run import Due, count_due
from workflow_adapters.cli.options import Json, Schema, Url, on_adapters, span
from workflow_adapters.cli.output import console, print_json, show, table
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.runtime.purger import Purger, Retention

TABLES = tuple(table.name for table in fields(Retention))

OlderThan: TypeAlias = Annotated[str, typer.Option("--older-than", help="Age of what goes: 90s, 15m, 12h, 30d or 4w.")]
Only: TypeAlias = Annotated[
    list[str] | None, typer.Option("--only", help=f"What goes: {', '.join(TABLES)}. May be repeated.")
]
All: TypeAlias = Annotated[bool, typer.Option("--all", help="All of that goes, the costs of model calls with it.")]
Batch: TypeAlias = Annotated[int, typer.Option("--batch", min=1, max=10_000, help="Rows deleted at once.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only count what would go, up to 10,000 rows of each table.",
    ),
]


def purge(
    older_than: OlderThan,
    url: Url = None,
    schema: Schema = None,
    only: Only = None,
    everything: All = False,
    batch: Batch = 500,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete what finished long ago: runs with all they own, jobs, events, idempotency keys, model calls.

    Say what goes: --only, or --all. Interrupt it at any time; the next one goes on where it was.
    """
    age = span(older_than)
    chosen = _chosen(only, everything=everything)
    retention = Retention(**dict.fromkeys(chosen, age))

    async def work(adapters: Adapters) -> Due:
        if dry_run:
            return await count_due(adapters, retention, batch)
        with _progress(quiet=as_json) as bars:
            return Due(await Purger(adapters, retention, batch=batch).purge(_Bars(bars).advance))

    done = on_adapters(url, schema, work)
    if as_json:
        or_more = {"or_more": [name for name in chosen if name in done.or_more]} if dry_run else {}
        print_json({"dry_run": dry_run, "deleted": {name: done.rows[name] for name in chosen}, **or_more})
        return
    title = "Would be deleted" if dry_run else "Deleted"
    rows = [(name, f"{done.rows[name]:,}{' or more' if name in done.or_more else ''}") for name in chosen]
    show(None, as_json=False, tables=[table(title, ["table", "rows"], rows)])


def _chosen(only: list[str] | None, *, everything: bool) -> list[str]:
    """The tables to purge, in the order in which they are."""
    if bool(only) is everything:
        raise typer.BadParameter("say what goes: either --only TABLE, which may be repeated, or --all")
    chosen = set(only or TABLES)
    unknown = chosen - set(TABLES)
    if unknown:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} is none of {', '.join(TABLES)}", param_hint="--only")
    return [name for name in TABLES if name in chosen]


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
