"""``ai-calls stats``."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow_adapters.cli.options import Json, Schema, Url, on_adapters
from workflow_adapters.cli.output import show, table
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.ai_call_logger import AIHelperStats

ai_calls = typer.Typer(no_args_is_help=True, help="Logged calls of models.")


@ai_calls.command("stats")
def stats(
    prefix: Annotated[str, typer.Argument(help="Start of the topics, literally; '' for all.")] = "",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Sum calls, tokens and costs per model."""

    async def work(adapters: Adapters) -> AIHelperStats:
        return await adapters.ai_call_logger.get_stats(prefix)

    found = on_adapters(url, schema, work)
    rows = [(model, m.calls, m.input_tokens, m.output_tokens, m.cost) for model, m in sorted(found.per_model.items())]
    total = ("all", found.total_calls, found.total_input_tokens, found.total_output_tokens, found.total_cost)
    columns = ["model", "calls", "tokens in", "tokens out", "cost"]
    show(found, as_json=as_json, tables=[table(f"Calls of topics {prefix}…", columns, [*rows, total])])
