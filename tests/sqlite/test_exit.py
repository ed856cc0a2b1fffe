"""A process that forgets to close ends all the same, and says what it forgot."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

EXITS_WITHIN = 5
ROOT = Path(__file__).parent.parent.parent

PROLOGUE = """
import asyncio, sys
from tests.sqlite.support import threads_left
from workflow_adapters import CreateRunInput, open_sqlite

def named(run_id):
    return CreateRunInput(id=run_id, workflow_id="w", workflow_name="n", workflow_type="t", input=None)

async def opened(path, kept):
    bundle = open_sqlite(path)
    kept.append(bundle)
    adapters = await bundle.__aenter__()
    kept.append(adapters)
    await adapters.migrate()
    await adapters.persistence.create_run(named("r"))
    return adapters
"""
FORGETS = """
kept = []

async def main():
    adapters = await opened(sys.argv[1], kept)
    assert await adapters.persistence.get_run("r")

asyncio.run(main())
print("returned")
"""
FORGETS_IN_A_LOOP_THAT_DIES = """
kept = []
loop = asyncio.new_event_loop()
adapters = loop.run_until_complete(opened(sys.argv[1], kept))
in_flight = loop.create_task(adapters.persistence.create_run(named("s")))
loop.run_until_complete(asyncio.sleep(0))
kept.append(loop)
print("returned")
"""
CLOSES_THE_LOOP = (
    FORGETS_IN_A_LOOP_THAT_DIES
    + """
asyncio.all_tasks = lambda loop: set()
loop.close()
"""
)
FAILS_TO_OPEN = """
async def main():
    async with open_sqlite("no such directory/x.db"):
        pass

try:
    asyncio.run(main())
except Exception as error:
    print("returned", type(error).__name__, threads_left())
"""
FAILS_HALF_WAY = """
async def main():
    async with open_sqlite(sys.argv[1]) as adapters:
        await adapters.migrate()
        raise ZeroDivisionError

try:
    asyncio.run(main())
except ZeroDivisionError:
    print("returned", threads_left())
"""


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROLOGUE) + program, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert time.monotonic() - started < EXITS_WITHIN + 2  # two seconds for the interpreter to start on a busy machine
    return done


@pytest.mark.parametrize("program", [FORGETS, FORGETS_IN_A_LOOP_THAT_DIES, CLOSES_THE_LOOP])
def test_a_process_that_forgets_to_close_ends(program: str, path: Path) -> None:
    done = run(program, path)
    assert done.stdout == "returned\n", done.stderr
    assert done.returncode == 0


def test_what_was_forgotten_is_told(path: Path) -> None:
    done = run(FORGETS_IN_A_LOOP_THAT_DIES, path)
    assert f"the bundle on {path} was never closed" in done.stderr


def test_what_fails_to_open_leaves_nothing(path: Path) -> None:
    done = run(FAILS_TO_OPEN, path)
    assert (done.stdout, done.returncode) == ("returned BackendUnavailableError []\n", 0), done.stderr


def test_what_fails_half_way_is_closed(path: Path) -> None:
    done = run(FAILS_HALF_WAY, path)
    assert (done.stdout, done.returncode) == ("returned []\n", 0), done.stderr
    assert [name for name in path.parent.iterdir() if name.name.endswith(("-wal", "-shm"))] == []
