"""Worked examples for the step ledger."""

from __future__ import annotations

from tests.worked_examples.examples import MINUTE, START, Pair, World, error_of, example, step
from workflow_adapters import StepKind, StepRecordExpectation, StepRecordPatch, StepStatus

RUNNING = StepRecordExpectation(status=StepStatus.RUNNING)


@example("claim", "insert if absent")
async def claim_creates(w: World) -> Pair:
    id = await w.stage_record_id()
    claim = await w.ledger.claim(step(id, wait_state={"k": 1}, lease_expires_at=START + MINUTE))
    r = claim.record
    observed = (claim.created, r.step_id, r.attempt, r.wait_state, r.lease_expires_at, r.created_at, r.result, r.error)
    return observed, (True, "a", 1, {"k": 1}, START + MINUTE, START, None, None)


@example("claim", "an existing row wins and comes back unchanged")
async def claim_existing(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id, result=[1]))
    again = await w.ledger.claim(step(id, result=[2], status=StepStatus.COMPLETED, attempt=7))
    return (again.created, again.record.result, again.record.status, again.record.attempt), (
        False,
        [1],
        StepStatus.RUNNING,
        1,
    )


@example("claim", "an unknown stage is NotFoundError")
async def claim_orphan(w: World) -> Pair:
    return await error_of(w.ledger.claim(step("nope"))), ("NotFoundError", "stage", "nope")


@example("get", "the row")
async def get_row(w: World) -> Pair:
    id = await w.stage_record_id()
    claim = await w.ledger.claim(step(id, kind=StepKind.SLEEP, deadline_at=START))
    return await w.ledger.get(id, "a"), claim.record


@example("get", "None for an unknown step")
async def get_none(w: World) -> Pair:
    return await w.ledger.get(await w.stage_record_id(), "nope"), None


@example("get", "steps of two stages are apart")
async def get_other_stage(w: World) -> Pair:
    first, second = await w.stage_record_id(), await w.stage_record_id(stage_id="s2")
    await w.ledger.claim(step(first))
    return await w.ledger.get(second, "a"), None


@example("update", "-> StepRecord; updated_at moves, created_at stays")
async def update_row(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    w.clock.advance(MINUTE)
    r = await w.ledger.update(id, "a", StepRecordPatch(status=StepStatus.COMPLETED, result={"n": 1.0}))
    return (r.status, r.result, r.created_at, r.updated_at), (
        StepStatus.COMPLETED,
        {"n": 1.0},
        START,
        START + MINUTE,
    )


@example("update", "NotFoundError when absent")
async def update_absent(w: World) -> Pair:
    id = await w.stage_record_id()
    return await error_of(w.ledger.update(id, "a", StepRecordPatch())), ("NotFoundError", "step", f"{id}/a")


@example("update", "result=None overwrites; a field left out is kept")
async def update_null(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id, result=1, error="e", wait_state={}))
    r = await w.ledger.update(id, "a", StepRecordPatch(result=None))
    return (r.result, r.error, r.wait_state), (None, "e", {})


@example("compare_and_set", "applies when the row is as expected")
async def cas_applies(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    cas = await w.ledger.compare_and_set(id, "a", RUNNING, StepRecordPatch(status=StepStatus.COMPLETED, attempt=2))
    return (cas.applied, cas.record.status, cas.record.attempt), (True, StepStatus.COMPLETED, 2)


@example("compare_and_set", "the record is the row as it stands afterwards")
async def cas_refused(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id, status=StepStatus.COMPLETED, result=1))
    cas = await w.ledger.compare_and_set(id, "a", RUNNING, StepRecordPatch(result=2))
    return (cas.applied, cas.record.result), (False, 1)


@example("compare_and_set", "attempt unset matches any attempt; a given one must equal")
async def cas_attempt(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id, attempt=3))
    second = StepRecordExpectation(status=StepStatus.RUNNING, attempt=2)
    third = StepRecordExpectation(status=StepStatus.RUNNING, attempt=3)
    applied = [
        (await w.ledger.compare_and_set(id, "a", expected, StepRecordPatch(error="x"))).applied
        for expected in (second, third, RUNNING)
    ]
    return applied, [False, True, True]


@example("compare_and_set", "None when there is none")
async def cas_absent(w: World) -> Pair:
    cas = await w.ledger.compare_and_set(await w.stage_record_id(), "a", RUNNING, StepRecordPatch(error="x"))
    return (cas.applied, cas.record), (False, None)


@example("list", "by seq then step_id")
async def list_order(w: World) -> Pair:
    id = await w.stage_record_id()
    for name, seq in (("b", 2), ("c", 1), ("a", 2)):
        await w.ledger.claim(step(id, name, seq=seq))
    return [r.step_id for r in await w.ledger.list(id)], ["c", "a", "b"]


@example("list", "[] for a stage without steps")
async def list_empty(w: World) -> Pair:
    return await w.ledger.list(await w.stage_record_id()), []


@example("list", "text is ordered byte by byte")
async def list_bytewise(w: World) -> Pair:
    id = await w.stage_record_id()
    for name in ("é", "z", "Z", "a"):
        await w.ledger.claim(step(id, name))
    return [r.step_id for r in await w.ledger.list(id)], ["Z", "a", "z", "é"]


@example("clear", "clears the stage")
async def clear_stage(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    await w.ledger.clear(id)
    return await w.ledger.list(id), []


@example("clear", "another stage's steps stay")
async def clear_other(w: World) -> Pair:
    first, second = await w.stage_record_id(), await w.stage_record_id(stage_id="s2")
    await w.ledger.claim(step(first))
    await w.ledger.clear(second)
    return len(await w.ledger.list(first)), 1


@example("clear", "a cleared step can be claimed afresh")
async def clear_then_claim(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    await w.ledger.clear(id)
    return (await w.ledger.claim(step(id))).created, True


@example("clear_except", "keeps the steps listed")
async def clear_except_some(w: World) -> Pair:
    id = await w.stage_record_id()
    for name in ("a", "b", "c"):
        await w.ledger.claim(step(id, name))
    await w.ledger.clear_except(id, ["b", "nope"])
    return [r.step_id for r in await w.ledger.list(id)], ["b"]


@example("clear_except", "an empty list clears everything")
async def clear_except_none(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    await w.ledger.clear_except(id, [])
    return await w.ledger.list(id), []


@example("clear_except", "5,000 ids work")
async def clear_except_many(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id, "s4999"))
    await w.ledger.clear_except(id, [f"s{n}" for n in range(5000)])
    return len(await w.ledger.list(id)), 1
