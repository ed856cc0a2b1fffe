"""The commands of ``workflow-adapters``."""

from __future__ import annotations

import typer

from workflow_adapters.cli.ai_calls import ai_calls
from workflow_adapters.cli.jobs import jobs
from workflow_adapters.cli.outbox import outbox
from workflow_adapters.cli.purge import purge
from workflow_adapters.cli.runs import runs
from workflow_adapters.cli.schema import check, migrate
from workflow_adapters.cli.status import status

app = typer.Typer(
    name="workflow-adapters",
    no_args_is_help=True,
    # Locals in a traceback would show the password of the URL.
    pretty_exceptions_enable=False,
    help="Look after the database of durable workflows: schema, runs, jobs, outbox, retention.",
)
app.command()(migrate)
app.command()(check)
app.command()(status)
app.add_typer(runs, name="runs")
app.add_typer(jobs, name="jobs")
app.add_typer(outbox, name="outbox")
app.command()(purge)
app.add_typer(ai_calls, name="ai-calls")
