"""The demo: ``python -m examples.document_pipeline [FOLDER]``."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import anyio
from anyio.abc import Process

from examples.document_pipeline.account import check, tell
from examples.document_pipeline.handlers import WORKFLOW, event_input, job_input, stage_input
from examples.document_pipeline.journal import Journal
from examples.document_pipeline.worker import LEASE
from workflow_adapters import Adapters, CreateRunInput, OutboxRecord, Status, new_id, open_adapters
from workflow_adapters.runtime import OutboxRelay, Reaper

PROJECT = Path(__file__).parent.parent.parent
FEWEST_FILES = 2  # one for each mishap
MOST_FILES = 30
DEADLINE = 60


def find_files(folder: Path) -> dict[str, Path]:
    """Text and Markdown files below the folder (of this project: its docs), by their relative names."""
    if folder == PROJECT:
        found = [*folder.glob("*.md"), *folder.glob("docs/**/*.md")]
    else:
        found = [path for suffix in ("*.md", "*.txt") for path in folder.rglob(suffix) if path.is_file()]
    return {str(path.relative_to(folder)): path for path in sorted(found)[:MOST_FILES]}


async def create(adapters: Adapters, files: dict[str, Path]) -> str:
    """The run, its first stage and job, and its first event: all of them or none."""
    run_id = new_id()
    async with adapters.transaction() as tx:
        await tx.persistence.create_run(
            CreateRunInput(
                id=run_id,
                workflow_id=WORKFLOW,
                workflow_name="Document pipeline",
                workflow_type="documents",
                input={"files": list(files)},
            )
        )
        await tx.persistence.create_stage(stage_input(run_id, "split"))
        await tx.job_queue.enqueue_parallel([job_input(run_id, "split", {"files": list(files)})])
        await tx.persistence.append_outbox_events([event_input(run_id, "workflow:started", {})])
    return run_id


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what other processes do, which no event of this one tells."""
    while True:
        if await condition():
            return
        await anyio.sleep(0.02)


class Workers:
    """The worker processes; none outlives the demo."""

    def __init__(self, url: str, folder: Path, journal: Journal) -> None:
        self._command = [sys.executable, "-m", "examples.document_pipeline.worker", url, str(folder), str(journal.path)]
        self._journal = journal
        self._processes: list[Process] = []

    async def start(self, name: str, mishap: str = "") -> Process:
        process = await anyio.open_process(
            [*self._command, name, mishap], cwd=PROJECT, stdin=None, stdout=None, stderr=None
        )
        self._processes.append(process)
        self._journal.note("starts a worker", name=name)
        return process

    async def end(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                os.kill(process.pid, signal.SIGCONT)
                process.terminate()
        with anyio.CancelScope(shield=True):
            for process in self._processes:
                with anyio.move_on_after(10):
                    await process.wait()
                if process.returncode is None:
                    process.kill()
                await process.aclose()


async def mishaps(adapters: Adapters, workers: Workers, journal: Journal, run_id: str) -> None:
    """Kill one worker in the middle of a stage, freeze another for longer than its lease, start a third."""
    killed = await workers.start("worker-1", "stalls")
    stopped = await workers.start("worker-2", "stops")

    async def noted(what: str) -> bool:
        return bool(journal.find(what))

    await until(lambda: noted("stalls"))
    killed.kill()
    journal.note("killed worker-1")
    await until(lambda: noted("stops"))
    await workers.start("worker-3")
    stage_id = journal.find("stops")[0]["stage"]

    async def taken_over() -> bool:
        stage = await adapters.persistence.get_stage(run_id, stage_id)
        return stage is not None and stage.status is Status.COMPLETED

    await until(taken_over)
    journal.note("wakes worker-2")
    os.kill(stopped.pid, signal.SIGCONT)
    await until(lambda: noted("late acknowledgement"))


async def run_pipeline(files: dict[str, Path], folder: Path, scratch: Path) -> list[str]:
    url = f"sqlite:///{scratch / 'pipeline.db'}"
    journal = Journal(scratch / "journal", "demo")
    events: list[OutboxRecord] = []

    async def publish(event: OutboxRecord) -> None:
        events.append(event)

    async with open_adapters(url) as adapters:
        await adapters.migrate()
        run_id = await create(adapters, files)
        workers = Workers(url, folder, journal)
        reaper = Reaper(adapters.job_queue, stale_after=LEASE, every=timedelta(milliseconds=100))
        relay = OutboxRelay(adapters.persistence, publish, every=timedelta(milliseconds=50))

        async def finished() -> bool:
            done = await adapters.persistence.get_run_status(run_id) is Status.COMPLETED
            return (
                done and (await adapters.operations.outbox_stats()).unpublished == 0 and len(events) >= len(files) + 3
            )

        with anyio.move_on_after(DEADLINE):
            async with anyio.create_task_group() as loops:
                loops.start_soon(reaper.run)
                loops.start_soon(relay.run)
                try:
                    await mishaps(adapters, workers, journal, run_id)
                    await until(finished)
                finally:
                    await workers.end()
                loops.cancel_scope.cancel()
        await tell(adapters, run_id, journal, events)
        return await check(adapters, run_id, journal, events, files)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT).resolve()
    files = find_files(folder) if folder.is_dir() else {}
    if len(files) < FEWEST_FILES:
        print(f"{folder} holds no two .md or .txt files; name a folder that does", file=sys.stderr)
        return 2
    print(f"Document pipeline over {len(files)} files of {folder.name}: two workers, one killed, one frozen")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="document-pipeline-") as scratch:
        wrong = anyio.run(run_pipeline, files, folder, Path(scratch))
    for problem in wrong:
        print(f"WRONG: {problem}")
    verdict = "FAILED" if wrong else "Checked: every word counted, no finished step ran twice"
    print(f"\n{verdict} ({time.monotonic() - began:.1f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
