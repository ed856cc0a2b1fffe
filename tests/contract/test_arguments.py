"""Invalid arguments are refused alike by every adapter, with the field and the path, and nothing is written."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tests.worked_examples.examples import START, job, run
from tests.worked_examples.test_examples import PORTS
from workflow_adapters import (
    UNSET,
    Adapters,
    IdempotencyFence,
    InvalidValueError,
    JobAckFence,
    Status,
    open_adapters,
)
from workflow_adapters.arguments import argument_checks

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001  # the refused value
FENCE = JobAckFence(started_at=START, attempt=1)
LONG = "é" * 401

REFUSED: list[tuple[str, str, tuple[Any, ...], str]] = [
    ("persistence", "create_run", ({"workflow_id": "w"},), "run"),
    ("persistence", "get_run", ("",), "id"),
    ("persistence", "get_run", (LONG,), "id"),
    ("persistence", "get_run", ("a\0",), "id"),
    ("persistence", "get_run", ("\ud800",), "id"),
    ("persistence", "get_run", (7,), "id"),
    ("persistence", "get_run", (UNSET,), "id"),
    ("persistence", "update_run", ("r", None), "patch"),
    ("persistence", "get_stuck_runs", (NAIVE,), "stuck_since"),
    ("persistence", "claim_next_pending_run", (NAIVE,), "now"),
    ("persistence", "claim_next_pending_run", (None, "everything"), "serves"),
    ("persistence", "claim_next_pending_run", (None, [("w", "v")]), "serves[0]"),
    ("persistence", "list_runs_for_purge", (START, [Status.PENDING], 1), "statuses[0]"),
    ("persistence", "list_runs_for_purge", (START, [Status.SKIPPED], 1), "statuses[0]"),
    ("persistence", "list_runs_for_purge", (START, [Status.FAILED], -1), "limit"),
    ("persistence", "list_runs_for_purge", (START, [Status.FAILED], 2**31), "limit"),
    ("persistence", "count_runs_by_definition_version", ("w", "v", "FAILED"), "status"),
    ("persistence", "get_stages_by_run", ("r", None, "down"), "order"),
    ("persistence", "get_suspended_stages", (START, 1.5), "limit"),
    ("persistence", "append_annotations", (["x"],), "annotations[0]"),
    ("persistence", "append_outbox_events", ("events",), "events"),
    ("persistence", "claim_unpublished_outbox_events", (True,), "limit"),
    ("persistence", "lease_outbox_events", (1, timedelta(0)), "lease"),
    ("persistence", "lease_outbox_events", (1, timedelta(days=366)), "lease"),
    ("persistence", "release_outbox_events", ("abc",), "ids"),
    ("persistence", "mark_outbox_events_published", (["a", ""],), "ids[1]"),
    ("persistence", "acquire_idempotency_key", ("k", "c", None, timedelta(seconds=-1)), "stale_in_progress_after"),
    ("persistence", "complete_idempotency_key", ("k", "c", {"a": float("nan")}), "result.a"),
    ("persistence", "complete_idempotency_key", ("k", "c", 1, FENCE), "fence"),
    ("persistence", "complete_idempotency_key", ("k", "c", 1, IdempotencyFence(id="", acquired_at=START)), "fence.id"),
    ("job_queue", "enqueue_parallel", ([job(), None],), "jobs[1]"),
    ("job_queue", "complete", ("", FENCE), "job_id"),
    ("job_queue", "complete", ("j", START), "fence"),
    ("job_queue", "complete", ("j", JobAckFence(started_at=NAIVE, attempt=1)), "fence.started_at"),
    ("job_queue", "complete", ("j", JobAckFence(started_at=START, attempt=cast("Any", "1"))), "fence.attempt"),
    ("job_queue", "delete_by_run_and_stages", ("r", UNSET), "stage_ids"),
    ("job_queue", "expire_runaway_jobs", (UNSET,), "absolute_timeout"),
    ("job_queue", "suspend", ("j", NAIVE), "next_poll_at"),
    ("job_queue", "fail", ("j", b"x"), "error"),
    ("job_queue", "fail", ("j", "x", 1), "should_retry"),
    ("job_queue", "defer", ("j", START, None), "reason"),
    ("job_queue", "release_stale_jobs", (5,), "stale_after"),
    ("job_queue", "dequeue_many", (-1,), "limit"),
    ("job_queue", "complete_many", ([("j",)],), "claims[0]"),
    ("job_queue", "heartbeat", ([("j", None)],), "claims[0][1]"),
    ("job_queue", "heartbeat", ([("j", JobAckFence(started_at=START, attempt=2**31))],), "claims[0][1].attempt"),
    ("step_ledger", "list", ("",), "stage_record_id"),
    ("step_ledger", "clear_except", ("s", "abc"), "keep_step_ids"),
    ("ai_call_logger", "log_batch_results", ("b", [1]), "results[0]"),
    ("ai_call_logger", "get_stats", ("a\0",), "topic_prefix"),
    ("operations", "list_runs", (None, None, 0), "limit"),
    ("operations", "purge_jobs", (NAIVE, 1), "finished_before"),
    ("operations", "purge_idempotency_keys", (None, START, 1), "completed"),
]


async def _stored(adapters: Adapters) -> list[object]:
    operations = adapters.operations
    return [
        await operations.queue_stats(),
        await operations.outbox_stats(),
        await operations.list_runs(),
        await adapters.ai_call_logger.get_stats(""),
    ]


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
@pytest.mark.asyncio
async def test_an_invalid_argument_is_refused_before_anything_is_written(url: str) -> None:
    async with open_adapters(url) as adapters:
        await adapters.migrate()
        before = await _stored(adapters)
        for port, method, args, path in REFUSED:
            with pytest.raises(InvalidValueError) as caught:
                await getattr(getattr(adapters, port), method)(*args)
            assert caught.value.path == path, (method, args)
            assert caught.value.field == path.split("[")[0].split(".")[0]
        assert await _stored(adapters) == before


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
@pytest.mark.asyncio
async def test_a_refused_value_leaves_the_transaction_usable(url: str) -> None:
    async with open_adapters(url) as adapters:
        await adapters.migrate()
        async with adapters.transaction() as tx:
            await tx.persistence.create_run(run())
            with pytest.raises(InvalidValueError):
                await tx.persistence.get_run("")
        assert await adapters.persistence.get_run("r1") is not None


@pytest.mark.asyncio
async def test_what_arrives_is_the_normalised_value() -> None:
    async with open_adapters("memory://") as adapters:
        await adapters.persistence.create_run(run())
        at = datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
        claimed = await adapters.persistence.claim_next_pending_run(now=at)
        assert claimed is not None
        assert claimed.started_at == at.replace(microsecond=999_000)


def test_every_argument_of_the_ports_is_checked() -> None:
    unchecked = {"log_call", "with_transaction"}  # log_call never raises; fn is the caller's
    for port in PORTS:
        checks = argument_checks(port)
        for name, method in inspect.getmembers(port, inspect.isfunction):
            parameters = set(inspect.signature(method).parameters) - {"self"}
            if not name.startswith("_") and parameters and name not in unchecked:
                assert set(checks.get(name, {})) == parameters, f"{port.__name__}.{name}"
