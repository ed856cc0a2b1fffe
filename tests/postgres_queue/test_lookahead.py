"""What is remembered of a costly look, and for how long."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tests.postgres_queue.support import a_job
from workflow_adapters import ServedDefinition
from workflow_adapters.postgres.claim_answer import ClaimAnswer, Seen
from workflow_adapters.postgres.lookahead import ClaimMemory, Lookahead


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def seen(*ids: str, priority: int = 5) -> list[Seen]:
    return [Seen(id=id, priority=priority, turn=None) for id in ids]


def answer(*ids: str, milliseconds: float = 0.1, costly: bool = False, priority: int = 5) -> ClaimAnswer:
    return ClaimAnswer([], 0, seen(*ids, priority=priority), False, milliseconds, costly)


@pytest.fixture
def time() -> Time:
    return Time()


def ids(lookahead: Lookahead, limit: int = 1) -> list[str] | None:
    recall = lookahead.recall(limit)
    return None if recall is None else [seen.id for seen in recall.ids]


def used_to_costly_looks(time: Time) -> Lookahead:
    lookahead = Lookahead(time)
    for _ in range(10):
        lookahead.looked(answer("x", milliseconds=5))
    return lookahead


def test_nothing_is_remembered_of_cheap_looks(time: Time) -> None:
    lookahead = Lookahead(time)
    for _ in range(100):
        lookahead.looked(answer("a"))
        assert ids(lookahead) is None
    assert not lookahead.is_costly


def test_a_batch_may_take_longer_by_what_it_takes(time: Time) -> None:
    lookahead = Lookahead(time)
    for _ in range(100):
        lookahead.looked(answer("a", milliseconds=15)._replace(failed=100))
    assert not lookahead.is_costly
    for _ in range(10):
        lookahead.looked(answer("a", milliseconds=30)._replace(failed=100))
    assert lookahead.is_costly


def test_one_cheap_look_ends_it(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    assert lookahead.is_costly
    lookahead.looked(answer("a", milliseconds=1.9))
    assert not lookahead.is_costly
    assert ids(lookahead) is None


@pytest.mark.parametrize(("milliseconds", "seconds"), [(3, 0.05), (10, 0.1), (60, 0.6), (100, 0.9), (100_000, 0.9)])
def test_it_lasts_ten_times_the_look_and_never_a_second(time: Time, milliseconds: float, seconds: float) -> None:
    lookahead = used_to_costly_looks(time)
    lookahead.looked(answer("a", milliseconds=milliseconds))
    time.now += seconds - 0.001
    assert ids(lookahead) == ["a"]
    lookahead.looked(answer("a", milliseconds=milliseconds))
    time.now += seconds
    assert ids(lookahead) is None


def test_what_a_claim_did_not_come_to_is_put_back_and_what_it_passed_by_is_not(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    lookahead.looked(answer(*"abcdefgh", milliseconds=5))
    recall = lookahead.recall(1)
    assert recall is not None
    assert [seen.id for seen in recall.ids] == list("abcde")
    lookahead.used(recall, {"c"}, [])
    assert ids(lookahead, 10) == list("defgh")


def test_where_nothing_was_to_be_had_nothing_is_put_back(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    lookahead.looked(answer(*"abcdefgh", milliseconds=5))
    recall = lookahead.recall(1)
    assert recall is not None
    lookahead.used(recall, set(), [])
    assert ids(lookahead, 10) == list("fgh")


def test_new_jobs_stand_behind_those_of_their_priority(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    lookahead.looked(answer(milliseconds=5)._replace(seen=seen("a", "b") + seen("z", priority=1)))
    lookahead.came_new(seen("urgent", priority=9) + seen("c", "d") + seen("last", priority=1))
    assert ids(lookahead, 10) == ["urgent", "a", "b", "c", "d", "z", "last"]


def test_new_jobs_are_not_taken_before_what_was_not_seen(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    some = [f"{number:03}" for number in range(250)]
    lookahead.looked(answer(*some, milliseconds=5))
    lookahead.came_new(seen("urgent", priority=9) + seen("behind") + seen("last", priority=1))
    assert ids(lookahead, 1000) == ["urgent", *some]
    lookahead.looked(answer(*some, milliseconds=5))
    recall = lookahead.recall(1000)
    assert recall is not None
    lookahead.came_new(seen("behind"))
    assert ids(lookahead) is None


def test_new_jobs_are_for_who_serves_them_and_when_they_are_due(time: Time) -> None:
    memory = ClaimMemory(time)
    serves = (ServedDefinition(workflow_id="w", version="v"),)
    for lookahead in (memory.of(None), memory.of(serves)):
        lookahead.looked(answer(costly=True))
    memory.came_new(
        [
            ("a", a_job()),
            ("b", a_job(definition_version="v")),
            ("c", a_job(definition_version="other")),
            ("d", a_job(workflow_id="x")),
            ("e", a_job(scheduled_for=datetime(2999, 1, 1, tzinfo=UTC))),
        ]
    )
    assert ids(memory.of(None), 10) == ["a", "b", "c", "d"]
    assert ids(memory.of(serves), 10) == ["a", "b"]


def test_a_job_that_came_back_is_looked_for_at_once_unless_looks_are_costly(time: Time) -> None:
    lookahead = Lookahead(time)
    lookahead.looked(answer("a", costly=True))
    lookahead.came_back()
    assert lookahead.recall(1) is None


def test_a_job_that_came_back_is_looked_for_soon(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    lookahead.looked(answer("a", milliseconds=3))
    lookahead.came_back()
    time.now += 0.029
    assert lookahead.recall(1) is not None
    lookahead.looked(answer("a", milliseconds=3))
    lookahead.came_back()
    time.now += 0.031
    assert lookahead.recall(1) is None


def test_more_is_asked_for_when_it_was_used_up_before_its_time(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    sizes = [lookahead.wanted]
    for _ in range(3):
        lookahead.looked(answer("a", milliseconds=50))
        assert ids(lookahead) == ["a"]
        assert ids(lookahead) is None
        sizes.append(lookahead.wanted)
    assert sizes == [250, 500, 1000, 1000]
    time.now += 10
    assert ids(lookahead) is None
    assert lookahead.wanted == 250


def test_room_is_remembered_only_as_long_as_the_rest(time: Time) -> None:
    memory = ClaimMemory(time)
    lookahead = memory.of(None)
    memory.claimed("job", ("1:w", "g"))
    memory.ended("job")
    assert lookahead.recall(1) is None
    lookahead.looked(answer(costly=True))
    memory.claimed("job", ("1:w", "g"))
    memory.ended("job")
    memory.ended("job")
    recall = lookahead.recall(1)
    assert recall is not None
    assert recall.parts == [("1:w", "g")]
    lookahead.used(recall, {"other"}, [("1:w", "h")])
    recall = lookahead.recall(1)
    assert recall is not None
    lookahead.used(recall, {"this"}, [("1:w", "g")])
    assert lookahead.recall(1) is None


def test_sets_of_lanes_are_apart_and_not_without_number(time: Time) -> None:
    memory = ClaimMemory(time)
    assert memory.of(()) is memory.of(())
    first = memory.of(())
    for number in range(40):
        memory.of((ServedDefinition(workflow_id=f"w{number}", version="v"),))
    assert memory.of(()) is not first


@pytest.mark.asyncio
async def test_others_wait_for_a_costly_look_and_not_for_long(time: Time) -> None:
    lookahead = used_to_costly_looks(time)
    assert not await lookahead.wait_for_look()
    with lookahead.looking():
        waiting = asyncio.create_task(lookahead.wait_for_look())
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting
    with lookahead.looking():
        assert await lookahead.wait_for_look()
    cheap = Lookahead(time)
    with cheap.looking():
        assert not await cheap.wait_for_look()
