"""Options that every command takes, and how a command runs on an open bundle."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar

import anyio
import typer

from workflow_adapters.errors import ConfigurationError, WorkflowAdapterError
from workflow_adapters.opening import open_adapters
from workflow_adapters.ports.adapters import Adapters

T = TypeVar("T")

ENVIRONMENT = "WORKFLOW_ADAPTERS_URL"

Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar=ENVIRONMENT,
        show_envvar=True,
        help="The database: sqlite:///file.db or postgresql://user:password@host/db.",
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Schema: TypeAlias = Annotated[
    str | None, typer.Option("--schema", help="The Postgres schema of the tables.", show_default="public")
]
After: TypeAlias = Annotated[str | None, typer.Option("--after", help="Go on after a page: its `next`.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=1000, help="Rows of a page.")]

# What the errors' advice is on a command line.
_COMMANDS = {
    "await adapters.migrate()": "workflow-adapters migrate",
    "await adapters.check_schema()": "workflow-adapters check",
}

_SPAN = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def span(text: str) -> timedelta:
    """``90s``, ``15m``, ``12h``, ``30d`` or ``4w``."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no span; write it like 90s, 15m, 12h, 30d or 4w")
    try:
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is too long") from error


def on_adapters(url: str | None, schema: str | None, work: Callable[[Adapters], Awaitable[T]]) -> T:
    """Open the bundle, run `work`, close it. An error of ours ends the command with one line on stderr."""
    if not url:
        fail(f"no database: give --url or set {ENVIRONMENT}", 2)
    options: dict[str, Any] = {} if schema is None else {"schema": schema}

    async def run() -> T:
        async with open_adapters(url, **options) as adapters:
            return await work(adapters)

    try:
        return anyio.run(run)
    except ConfigurationError as error:
        fail(str(error), 2)
    except WorkflowAdapterError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(message: str, code: int) -> NoReturn:
    """Print an error and end the command."""
    for call, command in _COMMANDS.items():
        message = message.replace(call, command)
    typer.echo(f"workflow-adapters: {message}", err=True)
    raise typer.Exit(code)
