"""The options that callers are told of by type are those that functions and settings take, under the same types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from workflow_adapters import options
from workflow_adapters.memory import MemoryStore
from workflow_adapters.memory.bundle import open_memory
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.runtime import OutboxRelay, Purger, Reaper
from workflow_adapters.runtime import options as runtime
from workflow_adapters.runtime.service import ServiceSettings
from workflow_adapters.runtime.settings import WorkerOptions, WorkerSettings
from workflow_adapters.sqlite.bundle import open_sqlite

NONE_IS_THE_DEFAULT = {(options.PostgresOptions, "clock"), (options.PostgresOptions, "backoff")}
"""Resolved before the settings are made."""


@pytest.mark.parametrize(
    ("typed", "taker"),
    [
        (options.MemoryOptions, open_memory),
        (options.SqliteOptions, open_sqlite),
        (options.PostgresOptions, PostgresSettings),
        (WorkerOptions, WorkerSettings),
        (runtime.ReaperOptions, Reaper),
        (runtime.RelayOptions, OutboxRelay),
        (runtime.PurgerOptions, Purger),
        (runtime.ServiceOptions, ServiceSettings),
    ],
)
def test_names_and_types_agree(typed: type, taker: Callable[..., Any]) -> None:
    parameters = inspect.signature(taker).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    constructor = taker.__init__ if inspect.isclass(taker) else inspect.unwrap(taker)
    taken = get_type_hints(constructor)
    told = get_type_hints(typed, localns={"MemoryStore": MemoryStore})
    expected = {name: taken[name] | None if (typed, name) in NONE_IS_THE_DEFAULT else taken[name] for name in names}
    assert told == expected


def test_a_url_takes_the_options_of_every_backend() -> None:
    backends = (options.MemoryOptions, options.SqliteOptions, options.PostgresOptions)
    assert options.AdapterOptions.__optional_keys__ == frozenset[str]().union(*(b.__optional_keys__ for b in backends))
