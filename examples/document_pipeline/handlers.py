"""The three stages: split, analyse each file, report. Each ends in one transaction with its job's completion."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.document_pipeline import summariser
from examples.document_pipeline.journal import Journal
from examples.document_pipeline.steps import Steps
from workflow_adapters import (
    Adapters,
    CreateAICallInput,
    CreateOutboxEventInput,
    CreateStageInput,
    EnqueueJobInput,
    JsonValue,
    Status,
    TransactionAdapters,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
)
from workflow_adapters.runtime import JobContext

WORKFLOW = "document-pipeline"
ANALYSE = "analyse:"


@dataclass(frozen=True)
class Pipeline:
    """Handles the jobs of one worker process. `before_last_step` is where the demo lets things go wrong."""

    adapters: Adapters
    journal: Journal
    folder: Path
    before_last_step: Callable[[JobContext], Awaitable[None]]

    async def handle(self, ctx: JobContext) -> None:
        stage_id = ctx.job.stage_id
        self.journal.note("attempt began", stage=stage_id, attempt=ctx.job.attempt)
        stage = await self.adapters.persistence.upsert_stage(
            UpsertStageInput(
                create=stage_input(ctx.job.workflow_run_id, stage_id, ctx.job.attempt),
                update=UpdateStageInput(status=Status.RUNNING, attempt=ctx.job.attempt),
            )
        )
        if stage_id == "split":
            await self._split(ctx, stage.id)
        elif stage_id == "report":
            await self._report(ctx, stage.id)
        else:
            await self._analyse(ctx, stage.id, stage_id.removeprefix(ANALYSE))
        self.journal.note("attempt completed", stage=stage_id, attempt=ctx.job.attempt)

    async def _split(self, ctx: JobContext, stage_record_id: str) -> None:
        files: Any = ctx.job.payload["files"]
        run_id = ctx.job.workflow_run_id
        async with ctx.transaction() as tx:
            await _end_stage(tx, run_id, stage_record_id, "split", {"files": files})
            await tx.job_queue.enqueue_parallel([job_input(run_id, ANALYSE + name) for name in files])

    async def _analyse(self, ctx: JobContext, stage_record_id: str, name: str) -> None:
        text = (self.folder / name).read_text(errors="replace")
        steps = Steps(self.adapters.step_ledger, self.journal, stage_record_id, ctx.job.attempt)
        words = await steps.run(1, "count", lambda: sum(len(re.findall(r"\S+", line)) for line in text.splitlines()))
        found = await steps.run(2, "keywords", lambda: self._ask(name, summariser.keywords(text)))
        await self.before_last_step(ctx)
        told = await steps.run(3, "summary", lambda: self._ask(name, summariser.summary(text)))
        async with ctx.transaction() as tx:
            output: JsonValue = {"file": name, "words": words, "keywords": found, "summary": told}
            await _end_stage(tx, ctx.job.workflow_run_id, stage_record_id, ANALYSE + name, output)
            await self._report_when_all_are_done(tx, ctx)

    async def _report_when_all_are_done(self, tx: TransactionAdapters, ctx: JobContext) -> None:
        # _end_stage has written the run's row, and its lock is held until the commit: of two last stages that end at
        # once, the second sees the first one's end.
        run_id = ctx.job.workflow_run_id
        stages = await tx.persistence.get_stages_by_run(run_id)
        split = next(stage for stage in stages if stage.stage_id == "split")
        done = {stage.stage_id for stage in stages if stage.status is Status.COMPLETED}
        files: Any = split.output_data
        if all(ANALYSE + name in done for name in files["files"]):
            await tx.job_queue.enqueue_parallel([job_input(run_id, "report")])

    async def _report(self, ctx: JobContext, stage_record_id: str) -> None:
        run_id = ctx.job.workflow_run_id
        stages = await self.adapters.persistence.get_stages_by_run(run_id, Status.COMPLETED)
        files: list[Any] = [stage.output_data for stage in stages if stage.stage_id.startswith(ANALYSE)]
        report: JsonValue = {
            "words": sum(file["words"] for file in files),
            "files": sorted(files, key=lambda file: file["file"]),
        }
        async with ctx.transaction() as tx:
            await _end_stage(tx, run_id, stage_record_id, "report", None)
            now = datetime.now(UTC)
            await tx.persistence.update_run(
                run_id, UpdateRunInput(status=Status.COMPLETED, completed_at=now, output=report)
            )

    def _ask(self, topic: str, answer: summariser.Answer) -> JsonValue:
        self.adapters.ai_call_logger.log_call(
            CreateAICallInput(
                topic=f"{WORKFLOW}/{topic}",
                call_type="text",
                model_key=answer.model,
                model_id=f"local/{answer.model}",
                prompt=answer.prompt,
                response=answer.text,
                input_tokens=answer.input_tokens,
                output_tokens=answer.output_tokens,
                cost=answer.cost,
            )
        )
        return answer.text


async def _end_stage(
    tx: TransactionAdapters, run_id: str, stage_record_id: str, stage_id: str, output: JsonValue
) -> None:
    now = datetime.now(UTC)
    patch = UpdateStageInput(status=Status.COMPLETED, completed_at=now, output_data=output)
    await tx.persistence.update_stage(stage_record_id, patch)
    await tx.persistence.update_run(run_id, UpdateRunInput())
    await tx.persistence.append_outbox_events([event_input(run_id, "stage:completed", {"stage": stage_id})])


def stage_input(run_id: str, stage_id: str, attempt: int = 0) -> CreateStageInput:
    number = {"split": 1, "report": 3}.get(stage_id, 2)
    return CreateStageInput(
        workflow_run_id=run_id,
        stage_id=stage_id,
        stage_name=stage_id,
        stage_number=number,
        execution_group=number,
        attempt=attempt,
    )


def job_input(run_id: str, stage_id: str, payload: dict[str, JsonValue] | None = None) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id=run_id, workflow_id=WORKFLOW, stage_id=stage_id, payload=payload)


def event_input(run_id: str, event_type: str, payload: JsonValue) -> CreateOutboxEventInput:
    return CreateOutboxEventInput(
        workflow_run_id=run_id,
        event_type=event_type,
        payload=payload,
        causation_id=WORKFLOW,
        occurred_at=datetime.now(UTC),
    )
