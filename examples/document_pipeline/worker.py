"""One worker process: ``python -m examples.document_pipeline.worker URL FOLDER JOURNAL NAME MISHAP``."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

import anyio

from examples.document_pipeline.handlers import Pipeline
from examples.document_pipeline.journal import Journal
from workflow_adapters import BuiltInAdapters, open_adapters
from workflow_adapters.runtime import JobContext, Worker

LEASE = timedelta(seconds=1.5)


class Mishaps:
    """What befalls this process, once: it stalls (and will be killed), or stops itself as if the machine had frozen."""

    def __init__(self, kind: str, database: str, adapters: BuiltInAdapters, journal: Journal) -> None:
        self._kind = kind
        self._database = database
        self._adapters = adapters
        self._journal = journal

    async def befall(self, ctx: JobContext) -> None:
        kind, self._kind = self._kind, ""
        if kind == "stalls":
            await self._adapters.ai_call_logger.flush()
            self._journal.note("stalls", stage=ctx.job.stage_id, job=ctx.job.job_id)
            await anyio.sleep_forever()
        elif kind == "stops":
            self._journal.note("stops", stage=ctx.job.stage_id, job=ctx.job.job_id)
            try:
                self._stop_this_process()
                await anyio.sleep_forever()  # until the worker notices that the lease is gone
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self._acknowledge_too_late(ctx)
                raise

    async def _acknowledge_too_late(self, ctx: JobContext) -> None:
        outcome = await self._adapters.job_queue.complete(ctx.job.job_id, ctx.fence)
        self._journal.note("late acknowledgement", stage=ctx.job.stage_id, outcome=outcome.value)

    def _stop_this_process(self) -> None:
        # Whoever holds the file's write lock when it stops blocks every other process; so take it, and let it go.
        with sqlite3.connect(self._database, isolation_level=None) as lock:
            lock.execute("BEGIN IMMEDIATE")
            lock.execute("ROLLBACK")
        lock.close()
        os.kill(os.getpid(), signal.SIGSTOP)


async def main(url: str, folder: str, journal_path: str, name: str, mishap: str) -> None:
    journal = Journal(Path(journal_path), name)
    async with open_adapters(url) as adapters:
        mishaps = Mishaps(mishap, url.removeprefix("sqlite:///"), adapters, journal)
        pipeline = Pipeline(adapters, journal, Path(folder), mishaps.befall)
        worker = Worker(
            adapters.job_queue,
            pipeline.handle,
            adapters=adapters,
            concurrency=1,
            worker_id=name,
            lease=LEASE,
            poll_interval=timedelta(milliseconds=100),
        )
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.run)
                async for _ in signals:
                    worker.stop()
                    break


if __name__ == "__main__":
    url, folder, journal_path, name, mishap = sys.argv[1:]
    anyio.run(main, url, folder, journal_path, name, mishap)
