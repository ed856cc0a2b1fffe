"""``migrate`` and ``check``."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow_adapters.cli.options import Json, Schema, Url, fail, on_adapters
from workflow_adapters.cli.output import console, print_json
from workflow_adapters.errors import SchemaError
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.wording import counted


def migrate(
    url: Url = None,
    schema: Schema = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the SQL that would run; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Bring the schema to the current version. Safe to run again, and from several places at once."""

    async def work(adapters: Adapters) -> list[str]:
        return await adapters.migrate(plan=plan)

    statements = on_adapters(url, schema, work)
    if as_json:
        print_json({"planned" if plan else "ran": statements})
    elif plan:
        # Each ends with a semicolon, so that the plan can be piped into the database's own shell.
        typer.echo("\n\n".join(f"{statement.rstrip(';')};" for statement in statements) or "-- nothing to do")
    else:
        ran = f" ({counted(len(statements), 'statement')} ran)" if statements else ""
        console.print(f"the schema is current{ran}")


def check(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Say whether the schema is what this version needs. Exit code 1 if it is not."""

    async def work(adapters: Adapters) -> SchemaError | None:
        try:
            await adapters.check_schema()
        except SchemaError as error:
            return error
        return None

    error = on_adapters(url, schema, work)
    if as_json:
        print_json(
            {
                "ok": error is None,
                "missing": [] if error is None else error.missing,
                "mend": None if error is None else error.mend,
            }
        )
    elif error is None:
        console.print("the schema is complete")
    else:
        for missing in error.missing:
            typer.echo(f"missing: {missing}", err=True)
        fail(error.mend, 1)
    if error is not None:
        raise typer.Exit(1)
