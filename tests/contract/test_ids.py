"""`new_id`: UUIDv7 text that only ever goes up."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from workflow_adapters import ids, new_id


def test_an_id_is_a_uuid_of_version_7_and_of_this_moment() -> None:
    before = time.time_ns() // 1_000_000
    identifier = uuid.UUID(new_id())
    assert identifier.version == 7
    assert identifier.variant == uuid.RFC_4122
    assert before - 1 <= identifier.int >> 80 <= time.time_ns() // 1_000_000 + 1


@pytest.mark.parametrize("step", [0, 1, -1])
def test_each_is_greater_than_the_one_before(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    instant = time.time_ns() + 3_600_000_000_000

    def moved() -> int:
        nonlocal instant
        instant += step * 100_000
        return instant

    monkeypatch.setattr(time, "time_ns", moved)
    # Of its own: all later ids of this process would be of that hour, too.
    monkeypatch.setattr(ids, "_ids", ids._Ids())
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(set(made))
    assert all(uuid.UUID(each).version == 7 and uuid.UUID(each).variant == uuid.RFC_4122 for each in made[::500])


def test_threads_share_none() -> None:
    def many(_: int) -> list[str]:
        return [new_id() for _ in range(5_000)]

    with ThreadPoolExecutor(4) as pool:
        made = [each for some in pool.map(many, range(4)) for each in some]
    assert len(set(made)) == len(made)


FORKS = """
import os, time
from workflow_adapters import new_id

time.time_ns = lambda: 4_000_000_000_000_000_000
new_id()
child = os.fork()
os.write(1, f"{new_id()}\\n".encode())
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_does_not_go_on_as_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=30)
    assert len(set(done.stdout.split())) == 2
