"""JSON in all columns of persistence that hold it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from conformance.builders import annotation, event
from conformance.clause import Requires
from conformance.context import Context
from conformance.suites.json_columns import JsonColumn, JsonFamily, Read
from conformance.suites.workflow_persistence.scenes import new_run, new_stage, run_of, stage_of
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Replay


def _of_a_new_run(name: str) -> Callable[[Context[WorkflowPersistence], Any], Awaitable[Read]]:
    async def store(ctx: Context[WorkflowPersistence], value: Any) -> Read:
        stored = await new_run(ctx, **{name: value})

        async def read() -> JsonValue:
            return getattr(await run_of(ctx, stored.id), name)

        return read

    return store


async def _output(ctx: Context[WorkflowPersistence], value: Any) -> Read:
    stored = await new_run(ctx)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(output=value))

    async def read() -> JsonValue:
        return (await run_of(ctx, stored.id)).output

    return read


def _of_a_new_stage(name: str) -> Callable[[Context[WorkflowPersistence], Any], Awaitable[Read]]:
    async def store(ctx: Context[WorkflowPersistence], value: Any) -> Read:
        stored = await new_stage(ctx, **{name: value})

        async def read() -> JsonValue:
            return getattr(await stage_of(ctx, stored), name)

        return read

    return store


def _of_a_patched_stage(name: str) -> Callable[[Context[WorkflowPersistence], Any], Awaitable[Read]]:
    async def store(ctx: Context[WorkflowPersistence], value: Any) -> Read:
        stored = await new_stage(ctx)
        patch: dict[str, Any] = {name: value}
        await ctx.adapter.update_stage(stored.id, UpdateStageInput(**patch))

        async def read() -> JsonValue:
            return getattr(await stage_of(ctx, stored), name)

        return read

    return store


def _of_an_annotation(name: str) -> Callable[[Context[WorkflowPersistence], Any], Awaitable[Read]]:
    async def store(ctx: Context[WorkflowPersistence], value: Any) -> Read:
        run_id = await ctx.new_run()
        await ctx.adapter.append_annotations([annotation(run_id, **{name: value})])

        async def read() -> JsonValue:
            listed = ctx.expect("annotations", await ctx.adapter.list_annotations(run_id)).has_length(1)
            return getattr(listed[0], name)

        return read

    return store


async def _event_payload(ctx: Context[WorkflowPersistence], value: Any) -> Read:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id, payload=value)])

    async def read() -> JsonValue:
        listed = await ctx.adapter.get_unpublished_outbox_events(100_000)
        return next(one.payload for one in listed if one.workflow_run_id == run_id)

    return read


async def _idempotency_result(ctx: Context[WorkflowPersistence], value: Any) -> Read:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    await ctx.adapter.complete_idempotency_key(key, "t", value)

    async def read() -> JsonValue:
        outcome = await ctx.adapter.acquire_idempotency_key(key, "t")
        return ctx.expect("the outcome", outcome).is_a(Replay).result

    return read


async def _snapshot(ctx: Context[WorkflowPersistence], value: Any) -> Read:
    version = ctx.new_id("version")
    definition = CreateDefinitionInput(workflow_id="flow", version=version, snapshot=value, structure_hash="h")
    await ctx.adapter.insert_definition_if_absent(definition)

    async def read() -> JsonValue:
        stored = await ctx.adapter.get_definition("flow", version)
        return ctx.expect("the definition", stored).is_not_none().snapshot

    return read


_COLUMNS: Final = (
    JsonColumn(name="input of a run", store=_of_a_new_run("input")),
    JsonColumn(name="config of a run", store=_of_a_new_run("config")),
    JsonColumn(name="metadata of a run", store=_of_a_new_run("metadata")),
    JsonColumn(name="output of a run", store=_output),
    JsonColumn(name="config of a stage", store=_of_a_new_stage("config")),
    JsonColumn(name="input_data of a stage", store=_of_a_new_stage("input_data")),
    JsonColumn(name="output_data of a stage", store=_of_a_patched_stage("output_data")),
    JsonColumn(name="suspended_state of a stage", store=_of_a_patched_stage("suspended_state")),
    JsonColumn(name="resume_data of a stage", store=_of_a_patched_stage("resume_data")),
    JsonColumn(name="metrics of a stage", store=_of_a_patched_stage("metrics")),
    JsonColumn(name="embedding_info of a stage", store=_of_a_patched_stage("embedding_info")),
    JsonColumn(name="value of an annotation", store=_of_an_annotation("value")),
    JsonColumn(name="payload of an annotation", store=_of_an_annotation("payload")),
    JsonColumn(name="payload of an event", store=_event_payload),
    JsonColumn(name="result of an idempotency key", store=_idempotency_result),
)

JsonFamily(
    prefix="WP-JSON",
    columns=_COLUMNS,
    after=["WP-RUN-01", "WP-UPDATE-01", "WP-STAGE-21", "WP-ANN-01", "WP-OUT-01", "WP-IDEM-03"],
).register()

JsonFamily(
    prefix="WP-SNAPSHOT",
    columns=[JsonColumn(name="snapshot of a definition", store=_snapshot)],
    after=["WP-DEF-02"],
    needs=[Requires("definition_versions", "stored")],
).register()
