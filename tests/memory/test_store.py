"""Tables, indexes, the journal and the two states, against a plain model of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.inputs import START, job
from workflow_adapters import open_memory
from workflow_adapters.memory.rows import JobRow
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.memory.table import Change, Table
from workflow_adapters.records.status import Status


@dataclass(frozen=True)
class Row:
    key: int
    bucket: str | None
    order: int


Model = dict[int, Row]
rows = st.builds(Row, key=st.integers(0, 5), bucket=st.sampled_from(["a", "b", None]), order=st.integers(0, 2))
steps = st.one_of(rows, st.integers(0, 5), st.sampled_from(["savepoint", "release", "roll back"]))


class Script:
    """Plays steps on a table and on a dict, with a stack of savepoints."""

    def __init__(self) -> None:
        self.journal: list[Change] = []
        self.table: Table[Row] = Table("rows", lambda row: row.key, self.journal)
        self.by_bucket = self.table.index(lambda row: row.bucket, lambda row: (row.order, row.key))
        self.model: Model = {}
        self.savepoints: list[tuple[int, Model]] = []

    def play(self, step: Row | int | str) -> None:
        if isinstance(step, Row):
            self.table.put(step)
            self.model = {**self.model, step.key: step}
        elif isinstance(step, int):
            stored = self.table.get(step)
            if stored is not None:
                self.table.remove(stored)
            self.model = {key: row for key, row in self.model.items() if key != step}
        elif step == "savepoint":
            self.savepoints.append((len(self.journal), self.model))
        elif self.savepoints:
            savepoint, model = self.savepoints.pop()
            if step == "roll back":
                self.roll_back_to(savepoint)
                self.model = model

    def roll_back_to(self, savepoint: int) -> None:
        while len(self.journal) > savepoint:
            change = self.journal.pop()
            change.table.restore(change.key, change.before)

    def check(self) -> None:
        assert {row.key: row for row in self.table} == self.model
        for bucket in ("a", "b"):
            expected = [row for row in self.model.values() if row.bucket == bucket]
            expected.sort(key=lambda row: (row.order, row.key))
            assert self.by_bucket[bucket] == expected
            assert self.by_bucket.count(bucket) == len(expected)
            assert self.by_bucket.first(bucket) == (expected[0] if expected else None)
            assert self.by_bucket.last(bucket) == (expected[-1] if expected else None)
            assert list(self.by_bucket.descend(bucket, (1, 3))) == [
                row for row in reversed(expected) if (row.order, row.key) < (1, 3)
            ]
        assert set(self.by_bucket.buckets()) == {row.bucket for row in self.model.values()} - {None}


@given(st.lists(steps, max_size=25))
def test_a_table_with_its_indexes_follows_puts_removes_and_rollbacks(steps: list[Row | int | str]) -> None:
    script = Script()
    for step in steps:
        script.play(step)
    script.check()
    script.roll_back_to(0)
    assert len(script.table) == 0
    assert script.by_bucket.buckets() == []


def job_row(job_id: str, status: Status = Status.PENDING) -> JobRow:
    return JobRow(
        id=job_id,
        created_at=START,
        updated_at=START,
        workflow_run_id="r",
        stage_id=job_id,
        status=status,
        priority=5,
        payload={},
        max_attempts=3,
    )


@contextmanager
def failing() -> Iterator[None]:
    with pytest.raises(ZeroDivisionError):
        yield


@pytest.mark.anyio
async def test_a_commit_carries_over_what_changed_and_a_failure_nothing() -> None:
    store = MemoryStore()

    async def write(*, fail: bool, status: Status) -> None:
        async with store.writing(timedelta(0)) as tables:
            tables.jobs.put(job_row("a", status))
            assert store.committed.jobs.by_status.count(status) == 0
            if fail:
                raise ZeroDivisionError

    with failing():
        await write(fail=True, status=Status.PENDING)
    assert (len(store.working.jobs), len(store.committed.jobs), store.savepoint()) == (0, 0, 0)
    await write(fail=False, status=Status.PENDING)
    assert store.committed.jobs.get("a") is store.working.jobs.get("a")
    with failing():
        await write(fail=True, status=Status.RUNNING)
    for tables in (store.working, store.committed):
        assert [tables.jobs.by_status.count(status) for status in (Status.PENDING, Status.RUNNING)] == [1, 0]


@pytest.mark.parametrize("new_first", [True, False])
def test_a_unique_index_follows_whichever_of_two_rows_changes_first(new_first: bool) -> None:
    # A commit carries changed rows over in no order, so the successor of a pair may come before the old row goes.
    table: Table[JobRow] = Table("jobs", lambda job: job.id, None)
    by_pair = table.unique_index(lambda job: job.stage_id)
    old, new = table.put(job_row("old")), replace(job_row("new"), stage_id="old")
    changes = [lambda: table.put(new), lambda: table.remove(old)]
    for change in changes if new_first else reversed(changes):
        change()
    assert by_pair.get("old") is new
    table.put(replace(new, stage_id="moved"))
    assert by_pair.get("old") is None
    table.remove(replace(new, stage_id="moved"))
    assert by_pair.get("moved") is None


@pytest.mark.anyio
async def test_a_commit_that_changes_a_job_tells_who_waits() -> None:
    store = MemoryStore()
    changed = store.jobs_changed()
    async with store.writing(timedelta(0)) as tables:
        assert tables.jobs.get("a") is None
    assert not changed.is_set()
    async with store.writing(timedelta(0)) as tables:
        tables.jobs.put(job_row("a"))
        assert not changed.is_set()
    assert changed.is_set()
    assert not store.jobs_changed().is_set()


@pytest.mark.anyio
async def test_a_call_that_fails_half_way_in_a_transaction_leaves_no_half() -> None:
    store = MemoryStore()
    async with store.writing(timedelta(0)) as tables:
        tables.jobs.put(job_row("before"))
        with failing(), store.atomic():
            tables.jobs.put(job_row("half"))
            raise ZeroDivisionError
    assert [job.id for job in store.committed.jobs] == ["before"]


@pytest.mark.parametrize("backends", [("asyncio", "trio"), ("trio", "asyncio"), ("asyncio", "asyncio")])
def test_a_store_is_waited_on_in_one_loop_after_another(backends: tuple[str, str]) -> None:
    store = MemoryStore()

    async def wait_and_write(job_id: str) -> None:
        async with open_memory(store=store) as adapters, anyio.create_task_group() as tasks:
            with anyio.fail_after(5):
                changed = store.jobs_changed()
                tasks.start_soon(changed.wait)
                await anyio.wait_all_tasks_blocked()
                await adapters.job_queue.enqueue_parallel([job(job_id)])
                await changed.wait()
            store.jobs_changed()

    for number, backend in enumerate(backends):
        anyio.run(wait_and_write, str(number), backend=backend)
