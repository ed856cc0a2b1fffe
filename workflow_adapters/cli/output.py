"""Tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Ids, prefixes and error texts are shown as they are, even those that look like markup.
console = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)

_STYLES = {
    "COMPLETED": "green",
    "RUNNING": "cyan",
    "PENDING": "yellow",
    "SUSPENDED": "magenta",
    "FAILED": "bold red",
    "CANCELLED": "dim",
    "SKIPPED": "dim",
}


def plain(value: Any) -> Any:
    """A record as JSON: members in snake_case, instants in ISO 8601 UTC, enums by value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {str(plain(key)): plain(item) for key, item in members.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value


def print_json(value: Any) -> None:
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table; None is shown as an empty cell, a status in its colour."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(cell(value) for value in row))
    return made


def cell(value: Any) -> Text:
    """One value as it is shown."""
    shown = plain(value)
    if shown is None:
        return Text("")
    if isinstance(shown, dict | list):
        return Text(json.dumps(shown, ensure_ascii=False))
    text = str(shown)
    return Text(text, style=_STYLES.get(text, ""))


def record(title: str, value: Any) -> Table:
    """A record as two columns: field and value."""
    rows = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return table(title, ["field", "value"], rows)


def show(value: Any, *, as_json: bool, tables: Sequence[Table]) -> None:
    """Print the value as JSON, or its tables."""
    if as_json:
        print_json(value)
        return
    for one in tables:
        console.print(one)


def show_page(page: Any, *, as_json: bool, shown: Table) -> None:
    """Print a page, and how to go on."""
    show(page, as_json=as_json, tables=[shown])
    if not as_json and page.next is not None:
        console.print(f"more: --after {page.next}")
