"""claim_next_pending_run: which run is next, what the claim writes, and who gets it."""

from __future__ import annotations

from functools import partial
from typing import Final

from conformance.builders import run
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, new_run, run_in, run_of, served
from workflow_adapters.errors import BackendBusyError
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status

_VERSIONS: Final = Requires("definition_versions", "stored")


async def _claim(ctx: Context[WorkflowPersistence], serves: Serves = None) -> WorkflowRunRecord:
    return ctx.expect("the claim", await ctx.adapter.claim_next_pending_run(serves=serves)).is_not_none()


async def _drain(ctx: Context[WorkflowPersistence], serves: Serves = None) -> list[str]:
    claims: list[str] = []
    while (claimed := await ctx.adapter.claim_next_pending_run(serves=serves)) is not None:
        claims.append(claimed.id)
    return claims


@clause(
    "WP-CLAIM-01",
    MUST,
    text="A claim makes a PENDING run RUNNING, raises its version, and returns it as it is stored then.",
    why="A run that stays PENDING is started by every host; one whose version stays is overwritten by a late writer.",
    hints=["One statement selects, writes and returns."],
    after=["WP-RUN-01"],
)
async def claims(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    claimed = await _claim(ctx)
    ctx.expect("id", claimed.id).equals(stored.id)
    ctx.expect("status", claimed.status).equals(Status.RUNNING)
    ctx.expect("version", claimed.version).equals(2)
    ctx.expect("the stored run", await run_of(ctx, stored.id)).equals(claimed)


@clause(
    "WP-CLAIM-02",
    MUST,
    text="started_at and updated_at of a claimed run are the `now` that the caller gave, not any other clock.",
    why="Hosts compare these stamps with their own clock; the database's session zone shifts NOW() by hours.",
    hints=["Bind `now`; do not write NOW()."],
    after=["WP-CLAIM-01"],
)
async def the_callers_now(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx)
    now = ctx.now() - 100 * HOUR
    claimed = ctx.expect("the claim", await ctx.adapter.claim_next_pending_run(now)).is_not_none()
    ctx.expect("started_at", claimed.started_at).equals(now)
    ctx.expect("updated_at", claimed.updated_at).equals(now)
    ctx.expect("created_at", claimed.created_at).is_greater_than(now)


@clause(
    "WP-CLAIM-03",
    MUST,
    text="Without `now` a claim stamps the instant of the adapter's clock.",
    why="A start that lies elsewhere makes the run look stuck, or never so.",
    hints=["The adapter's Clock, also where the database has one."],
    after=["WP-CLAIM-01"],
)
async def the_adapters_now(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx)
    await ctx.advance(MINUTE)
    claimed = await _claim(ctx)
    ctx.expect_now("started_at", claimed.started_at)
    ctx.expect("updated_at", claimed.updated_at).equals(claimed.started_at)


@clause(
    "WP-CLAIM-04",
    MUST,
    text="The run of the highest priority is claimed first, and among those the oldest.",
    why="Urgent runs would wait behind a backlog, or old ones for ever.",
    hints=["ORDER BY priority DESC, created_at, id."],
    after=["WP-CLAIM-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    rows = (("c", 5), ("a", 5), ("high", 9), ("low", -1), ("b", 5))
    ids: dict[str, str] = {}
    for name, priority in rows:
        ids[name] = (await new_run(ctx, id=ctx.new_id(name), priority=priority)).id
        await ctx.advance(MINUTE)
    expected = [ids[name] for name in ("high", "c", "a", "b", "low")]
    ctx.expect("order of the claims", await _drain(ctx)).equals(expected)


@clause(
    "WP-CLAIM-05",
    MUST,
    text="Runs of one priority and one instant are claimed in the order of their ids, byte by byte.",
    why="Without a last criterion the order depends on the plan, and two adapters differ.",
    hints=['ORDER BY …, id; with COLLATE "C" where the collation of the database is another.'],
    needs=[Requires("clock", "caller")],
    after=["WP-CLAIM-04"],
)
async def ties(ctx: Context[WorkflowPersistence]) -> None:
    stem = ctx.new_id("tie")
    ids = [f"{stem}{tail}" for tail in ("b", "B", "a", "\u00e9", "_", "1")]
    for run_id in ids:
        await ctx.adapter.create_run(run(id=run_id))
    ctx.expect("order of the claims", await _drain(ctx)).equals(sorted(ids))


@clause(
    "WP-CLAIM-06",
    MUST,
    text="Only PENDING runs are claimed; with none a claim answers None.",
    why="Finished or suspended runs would start over.",
    hints=["status = 'PENDING', nothing else."],
    after=["WP-CLAIM-01", "WP-UPDATE-10"],
)
async def pending_only(ctx: Context[WorkflowPersistence]) -> None:
    for status in Status:
        if status is not Status.PENDING:
            await run_in(ctx, status)
    ctx.expect("a claim", await ctx.adapter.claim_next_pending_run()).is_none()


@clause(
    "WP-CLAIM-07",
    MUST,
    text="However many hosts claim at once, each run goes to exactly one, and as many claims as runs all get one.",
    why="A run that starts twice does everything twice; None for a lost race leaves a host idle beside work.",
    hints=["FOR UPDATE SKIP LOCKED inside the claiming UPDATE, or a compare-and-set that tries the next row."],
    after=["WP-CLAIM-01"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 4
    for _ in range(3):
        ids = {(await new_run(ctx)).id for _ in adapters}
        answers = await ctx.settled(*(adapter.claim_next_pending_run for adapter in adapters))
        ctx.expect("claims that answered None", sum(answer is None for answer in answers)).equals(0)
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        wrong = [error for error in errors if not isinstance(error, BackendBusyError)]
        ctx.expect("errors other than BackendBusyError", wrong).is_empty()
        taken = [answer.id for answer in answers if isinstance(answer, WorkflowRunRecord)] + await _drain(ctx)
        ctx.expect("claims that got a run, those that were busy repeated", taken).has_length(len(ids))
        ctx.expect("runs that nobody got", ids - set(taken)).is_empty()


@clause(
    "WP-CLAIM-08",
    MUST,
    text="Of two hosts that want one run, one gets it and the other gets None.",
    why="This is the moment at which a workflow is run twice.",
    hints=["The status is compared in the UPDATE."],
    after=["WP-CLAIM-01"],
)
async def one_run(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(2)
    for _ in range(5):
        stored = await new_run(ctx)
        answers = await ctx.together(*(adapter.claim_next_pending_run for adapter in adapters))
        got = [answer.id for answer in answers if answer is not None]
        ctx.expect("runs handed out", got).equals([stored.id])


@clause(
    "WP-SERVES-01",
    MUST,
    text="A claim without serves, or with 'all', takes any run, pinned or not.",
    why="A single fleet that runs everything would leave runs lying.",
    hints=["No serves means no filter."],
    after=["WP-CLAIM-01"],
)
async def anything(ctx: Context[WorkflowPersistence]) -> None:
    for serves in (None, "all"):
        ids = [(await new_run(ctx)).id, (await new_run(ctx, workflow_id="other", definition_version="v9")).id]
        ctx.expect(f"runs claimed with serves={serves}", sorted(await _drain(ctx, serves))).equals(sorted(ids))


@clause(
    "WP-SERVES-02",
    MUST,
    text="A claim with an empty serves takes nothing.",
    why="A host that has registered no workflow yet would take runs and fail them.",
    hints=["An empty list is not the same as None."],
    needs=[_VERSIONS],
    after=["WP-CLAIM-01"],
)
async def nothing(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx)
    ctx.expect("a claim with serves=[]", await ctx.adapter.claim_next_pending_run(serves=[])).is_none()
    await _claim(ctx)


@clause(
    "WP-SERVES-03",
    MUST,
    text="An unpinned run is claimed by whoever serves its workflow, in any version, and by nobody else.",
    why="Runs go to hosts that lack their code, or are left lying.",
    hints=["Without a definition_version only the workflow's id is compared."],
    needs=[_VERSIONS],
    after=["WP-CLAIM-01"],
)
async def unpinned(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx, workflow_id="mine")
    other = await ctx.adapter.claim_next_pending_run(serves=[served("other")])
    ctx.expect("a claim that serves another workflow", other).is_none()
    await _claim(ctx, [served("mine", "whatever")])


@clause(
    "WP-SERVES-04",
    MUST,
    text="A pinned run is claimed only by a caller that serves that very workflow and version, as a pair.",
    why="A run started on one version would be continued by the code of another.",
    hints=["`workflow = ANY($1) AND version = ANY($2)` mixes the pairs."],
    needs=[_VERSIONS],
    after=["WP-RUN-11", "WP-CLAIM-01"],
)
async def pinned(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx, workflow_id="mine", definition_version="v2")
    for serves in ([served("mine", "v1")], [served("other", "v2")], [served("mine", "v1"), served("other", "v2")]):
        shown = ", ".join(f"{one.workflow_id}@{one.version}" for one in serves)
        ctx.expect(f"a claim that serves {shown}", await ctx.adapter.claim_next_pending_run(serves=serves)).is_none()
    await _claim(ctx, [served("other", "v1"), served("mine", "v2")])


@clause(
    "WP-SERVES-05",
    MUST,
    text="Runs that the caller does not serve do not keep served ones behind them from being claimed.",
    why="A backlog of one workflow would starve the hosts of all others.",
    hints=["Filter before LIMIT, not after."],
    needs=[_VERSIONS],
    after=["WP-SERVES-03"],
)
async def foreign_runs_at_the_head(ctx: Context[WorkflowPersistence]) -> None:
    await ctx.together(*(partial(new_run, ctx, workflow_id="other", priority=9) for _ in range(30)))
    mine = await new_run(ctx, workflow_id="mine", priority=1)
    ctx.expect("run of the claim", (await _claim(ctx, [served("mine")])).id).equals(mine.id)
