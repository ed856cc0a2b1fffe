"""What is still there after an adapter has been closed: tasks, threads, connections."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import anyio

from conformance.wording import counted

_DESCRIPTORS: Final = "/proc/self/fd"
# Threads that belong to the event loop, not to whoever used them: they are kept for the next call.
_POOLED: Final = ("asyncio_", "AnyIO worker thread", "Trio thread", "conformance-")
# Drivers share an executor among all their clients in a process; one for each call would soon be more than that.
_EXECUTOR: Final = "ThreadPoolExecutor-"
_MOST_EXECUTOR_THREADS: Final = 64
OWN: Final = "conformance: "
"""Names of the harness's own tasks begin with this."""
_NUMBERED: Final = re.compile(r"Task-\d+")
_PAUSE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Inventory:
    """Tasks of the running loop, threads and open connections of the process."""

    tasks: frozenset[Any] = field(default_factory=frozenset[Any])
    threads: frozenset[threading.Thread] = field(default_factory=frozenset[threading.Thread])
    connections: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def take(cls, directory: Path) -> Inventory:
        """What there is now; of files, those open below `directory` count as connections."""
        threads = [thread for thread in threading.enumerate() if not thread.name.startswith(_POOLED)]
        shared = [thread for thread in threads if thread.name.startswith(_EXECUTOR)]
        if len(shared) <= _MOST_EXECUTOR_THREADS:
            threads = [thread for thread in threads if thread not in shared]
        return cls(frozenset(_tasks()), frozenset(threads), frozenset(_connections(directory)))

    def added_since(self, earlier: Inventory) -> Inventory:
        return Inventory(
            self.tasks - earlier.tasks, self.threads - earlier.threads, self.connections - earlier.connections
        )

    def __bool__(self) -> bool:
        return bool(self.tasks or self.threads or self.connections)

    def kinds(self) -> frozenset[str]:
        """What the tasks and threads run, and how many connections: two inventories of the same kinds look alike."""
        named = [_words_of_task(task) for task in self.tasks] + [_words_of_thread(thread) for thread in self.threads]
        return frozenset([*named, *(["connections"] if self.connections else [])])

    def words(self) -> str:
        parts = [
            _counted(len(self.tasks), "task", (_words_of_task(task) for task in self.tasks)),
            _counted(len(self.threads), "thread", (_words_of_thread(thread) for thread in self.threads)),
            _counted(len(self.connections), "connection", ()),
        ]
        return ", ".join(part for part in parts if part)


async def leftovers(before: Inventory, directory: Path, seconds: float = 1.0) -> Inventory:
    """What has been added since `before` and does not go away in that time: closing may take a few turns."""
    left = Inventory()
    with anyio.move_on_after(seconds):
        while left := Inventory.take(directory).added_since(before):  # noqa: ASYNC110 - nobody tells of the end of a thread
            await anyio.sleep(_PAUSE)
    return left


def _tasks() -> Iterable[Any]:
    try:
        found: Iterable[Any] = [task for task in asyncio.all_tasks() if not task.done()]
    except RuntimeError:
        found = _trio_tasks()
    return [task for task in found if not _name_of(task).startswith(OWN)]


def _trio_tasks() -> Iterable[Any]:
    import trio

    root = trio.lowlevel.current_root_task()
    waiting: list[Any] = [] if root is None else [root]
    found: list[Any] = []
    while waiting:
        task = waiting.pop()
        found.append(task)
        for nursery in task.child_nurseries:
            waiting.extend(cast("Iterable[Any]", nursery.child_tasks))
    return found


def _connections(directory: Path) -> Iterable[str]:
    # By os, not by pathlib: every clause asks, and that took a tenth of a run.
    wanted = ("socket:", f"{directory}/")
    for number in os.listdir(_DESCRIPTORS) if os.path.isdir(_DESCRIPTORS) else ():  # noqa: PTH112, PTH208 - see above
        try:
            target = os.readlink(f"{_DESCRIPTORS}/{number}")  # noqa: PTH115 - see above
        except OSError:
            continue
        if target.startswith(wanted):
            yield target


def _name_of(task: Any) -> str:
    return str(task.get_name() if isinstance(task, asyncio.Task) else task.name)


def _words_of_task(task: Any) -> str:
    name = _name_of(task)
    if not _NUMBERED.fullmatch(name):
        return name
    return str(getattr(task.get_coro(), "__qualname__", name))


def _words_of_thread(thread: threading.Thread) -> str:
    # A name of the default form ends in the function that the thread runs.
    return thread.name.rpartition("(")[2].rstrip(")")


def _counted(count: int, what: str, names: Iterable[str]) -> str:
    if not count:
        return ""
    shown = sorted(set(names))
    rest = ", …" if len(shown) > len(shown[:3]) else ""
    told = f" ({', '.join(shown[:3])}{rest})" if shown else ""
    return f"{counted(count, what)}{told}"
