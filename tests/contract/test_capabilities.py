"""`supports`: what an adapter offers besides its port, through whatever it is wrapped in."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

import workflow_adapters
from workflow_adapters import JobQueue, SupportsDefer, SupportsHeartbeat, open_memory, supports

CAPABILITIES = [getattr(workflow_adapters, name) for name in workflow_adapters.__all__ if name.startswith("Supports")]


class Wrapper:
    """What a tracer puts before an adapter."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)


def offered(adapter: object) -> set[str]:
    return {each.__name__ for each in CAPABILITIES if supports(adapter, each)}


@pytest.mark.asyncio
async def test_a_wrapper_offers_what_is_in_it() -> None:
    async with open_memory() as adapters:
        everything: set[str] = set()
        for port in (adapters.job_queue, adapters.persistence, adapters.step_ledger, adapters.ai_call_logger):
            assert offered(Wrapper(port)) == offered(port)
            everything |= offered(port)
        assert everything == {each.__name__ for each in CAPABILITIES}


def test_the_port_alone_offers_nothing_more() -> None:
    class Bare:
        enqueue = dequeue = complete = suspend = fail = JobQueue.complete

    assert offered(Bare()) == set()
    assert offered(None) == set()


def test_half_a_capability_is_none() -> None:
    class Half:
        async def lease_outbox_events(self) -> None: ...

    assert offered(Half()) == set()


@pytest.mark.asyncio
async def test_what_a_subclass_has_switched_off_is_not_offered() -> None:
    async with open_memory() as adapters:
        wrapped: Any = Wrapper(adapters.job_queue)
        wrapped.dequeue_many = None
        assert offered(adapters.job_queue) - offered(wrapped) == {"SupportsDequeueMany"}


def test_what_a_capability_inherits_is_asked_for_as_well() -> None:
    class SupportsBoth(SupportsDefer, SupportsHeartbeat, Protocol): ...

    class One:
        async def defer(self) -> None: ...

    class Both(One):
        async def heartbeat(self) -> None: ...

    assert [supports(each, SupportsBoth) for each in (None, One(), Both())] == [False, False, True]
