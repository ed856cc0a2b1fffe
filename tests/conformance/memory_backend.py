"""The memory adapters as the harness takes them: one store for each namespace."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from conformance.backend import Env, Fixture
from tests.conformance.bundles import options_of
from workflow_adapters.json_values import JsonValue
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.opening import open_memory
from workflow_adapters.ports.adapters import Adapters

_stores: Final[weakref.WeakValueDictionary[str, MemoryStore]] = weakref.WeakValueDictionary()


@asynccontextmanager
async def open_on_memory(env: Env) -> AsyncGenerator[Fixture[Adapters]]:
    """A bundle on the namespace's store, which lives as long as one of its bundles."""
    store = _stores.setdefault(env.namespace, MemoryStore())

    async def store_payload(job_id: str, payload: JsonValue) -> None:
        for tables in (store.working, store.committed):
            job = tables.jobs.get(job_id)
            assert job is not None
            tables.jobs.restore(job_id, replace(job, payload=payload))

    async with open_memory(store=store, **options_of(env)) as adapters:
        yield Fixture(adapter=adapters, store_payload=store_payload)
