"""``outbox dlq list``, ``outbox dlq replay`` and ``outbox release``."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow_adapters.cli.options import After, Json, Limit, Schema, Url, on_adapters
from workflow_adapters.cli.output import console, print_json, show_page, table
from workflow_adapters.inputs.operations import DEFAULT_PAGE
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.operations import Page
from workflow_adapters.records.outbox import OutboxRecord

outbox = typer.Typer(no_args_is_help=True, help="The transactional outbox.")
dlq = typer.Typer(no_args_is_help=True, help="Dead letters.")
outbox.add_typer(dlq, name="dlq")


@dlq.command("list")
def list_dead(
    url: Url = None, schema: Schema = None, after: After = None, limit: Limit = DEFAULT_PAGE, as_json: Json = False
) -> None:
    """List dead letters, the latest first."""

    async def work(adapters: Adapters) -> Page[OutboxRecord]:
        return await adapters.operations.list_dead_outbox_events(after, limit)

    page = on_adapters(url, schema, work)
    rows = [(e.id, e.workflow_run_id, e.sequence, e.event_type, e.retry_count, e.dlq_at) for e in page.items]
    columns = ["id", "run", "sequence", "type", "retries", "dead since"]
    show_page(page, as_json=as_json, shown=table("Dead letters", columns, rows))


@dlq.command("replay")
def replay(
    url: Url = None,
    schema: Schema = None,
    most: Annotated[int, typer.Option("--max", min=1, help="How many, the oldest first.")] = 100,
    as_json: Json = False,
) -> None:
    """Make the oldest dead letters claimable again."""

    async def work(adapters: Adapters) -> int:
        return await adapters.persistence.replay_dlq_events(most)

    count = on_adapters(url, schema, work)
    if as_json:
        print_json({"replayed": count})
    else:
        console.print(f"dead letters that will be published again: {count}")


@outbox.command("release")
def release(
    event_ids: Annotated[list[str], typer.Argument(help="Ids of events that were claimed but never emitted.")],
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Hand events back that a relay claimed without a lease and did not emit (it logged their ids)."""

    async def work(adapters: Adapters) -> None:
        await adapters.persistence.release_outbox_events(event_ids)

    on_adapters(url, schema, work)
    if as_json:
        print_json({"released": event_ids})
    else:
        console.print(f"handed back, where claimed and not emitted: {len(event_ids)}")
