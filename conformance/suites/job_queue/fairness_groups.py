"""Which group a job belongs to."""

from __future__ import annotations

from typing import Any, Final

from conformance.builders import job
from conformance.clause import MUST, Options
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import drain, stage_ids
from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.ports.job_queue import JobQueue, SupportsFairness

_NEEDS: Final = (SupportsFairness,)
_BY_KEY: Final = Options(fairness=JobQueueFairness(max_concurrent_per_group=1))
_BY_PATH: Final = Options(fairness=JobQueueFairness(max_concurrent_per_group=1, group_by="tenant.id"))


async def _claimed(ctx: Context[JobQueue], **jobs: dict[str, Any]) -> list[str]:
    """Enqueue the jobs, named by their stages, in this order; the stages claimed with a cap of one per group."""
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel(
        [job(run_id, name, priority=-number, **fields) for number, (name, fields) in enumerate(jobs.items())]
    )
    return stage_ids(await drain(ctx.adapter))


@clause(
    "JQ-FAIR-11",
    MUST,
    text="Jobs without a group are one group of their own, under the empty name.",
    why="A cap that NULL escapes is no cap for whoever sets no key.",
    hints=["`NULL = NULL` is not true: coalesce the group to ''."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_BY_KEY,
)
async def no_group(ctx: Context[JobQueue]) -> None:
    claimed = await _claimed(ctx, a={}, b={}, c={"group_key": "c"})
    ctx.expect("stages claimed", claimed).equals(["a", "c"])


@clause(
    "JQ-FAIR-12",
    MUST,
    text="Groups are compared exactly: case, blanks and wildcards make different groups.",
    why="Two tenants would share one cap, or one tenant would have several.",
    hints=["Plain equality of text, no collation that folds."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_BY_KEY,
)
async def exactly(ctx: Context[JobQueue]) -> None:
    keys = ("a", "A", "a ", "_", "%", "\u00e4", "a\u0308", '"a"', "null")
    claimed = await _claimed(ctx, **{f"job-{number}": {"group_key": key} for number, key in enumerate(keys)})
    ctx.expect("jobs claimed of as many groups", claimed).has_length(len(keys))


@clause(
    "JQ-FAIR-13",
    MUST,
    text="A dotted group_by leads into the payload: `tenant.id` is the member id of the member tenant.",
    why="The cap would fall on one group for all, or on nobody.",
    hints=["Walk the path object by object; it is no single member name."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_BY_PATH,
)
async def dotted_path(ctx: Context[JobQueue]) -> None:
    claimed = await _claimed(
        ctx,
        a={"payload": {"tenant": {"id": "x"}}},
        b={"payload": {"tenant": {"id": "x"}}},
        c={"payload": {"tenant": {"id": "y"}}},
    )
    ctx.expect("stages claimed", claimed).equals(["a", "c"])


@clause(
    "JQ-FAIR-14",
    MUST,
    text="A number or boolean at the path is the group of its JSON text, the same as that text itself.",
    why="Hosts write ids as numbers or as texts; both are one tenant.",
    hints=["->> gives the text of a scalar; in other languages take the JSON text, `true` and not `True`."],
    needs=_NEEDS,
    after=["JQ-FAIR-13"],
    options=_BY_PATH,
)
async def scalars(ctx: Context[JobQueue]) -> None:
    values = {"n": 1, "text_n": "1", "float": 1.5, "text_float": "1.5", "yes": True, "text_yes": "true", "no": False}
    claimed = await _claimed(ctx, **{name: {"payload": {"tenant": {"id": value}}} for name, value in values.items()})
    ctx.expect("stages claimed", claimed).equals(["n", "float", "yes", "no"])


@clause(
    "JQ-FAIR-15",
    MUST,
    text="Where the path leads to nothing, null, an object or an array, the group is the job's group key.",
    why="Jobs of several kinds share a queue; those without the member would fall into one group.",
    hints=["coalesce(text at the path, group key, '')."],
    needs=_NEEDS,
    after=["JQ-FAIR-13"],
    options=_BY_PATH,
)
async def falls_back_to_the_group_key(ctx: Context[JobQueue]) -> None:
    payloads: tuple[dict[str, Any] | None, ...] = (
        None,
        {"tenant": None},
        {"tenant": "text"},
        {"tenant": {"id": None}},
        {"tenant": {"id": {}}},
        {"tenant": {"id": []}},
    )
    jobs = {f"key-{n}": {"payload": payload, "group_key": f"g{n}"} for n, payload in enumerate(payloads)}
    jobs |= {f"same-{n}": {"payload": payload, "group_key": f"g{n}"} for n, payload in enumerate(payloads)}
    jobs |= {f"other-{n}": {"payload": payload, "group_key": f"h{n}"} for n, payload in enumerate(payloads)}
    claimed = await _claimed(ctx, **jobs)
    ctx.expect("stages claimed", claimed).equals([name for name in jobs if not name.startswith("same")])


@clause(
    "JQ-FAIR-16",
    MUST,
    text="Without the member and without a group key, the group is the empty text, an empty member included.",
    why="NULL groups escape the cap.",
    hints=["coalesce(text at the path, group key, '')."],
    needs=_NEEDS,
    after=["JQ-FAIR-15"],
    options=_BY_PATH,
)
async def falls_back_to_nothing(ctx: Context[JobQueue]) -> None:
    claimed = await _claimed(ctx, a={}, b={"payload": {"tenant": {}}}, c={"payload": {"tenant": {"id": ""}}})
    ctx.expect("stages claimed", claimed).equals(["a"])


@clause(
    "JQ-FAIR-17",
    MUST,
    text="A text at the path is the group also where the job has a group key.",
    why="The configured path would count for nothing as soon as a host sets keys for other reasons.",
    hints=["The path comes first, the key second."],
    needs=_NEEDS,
    after=["JQ-FAIR-13"],
    options=_BY_PATH,
)
async def the_path_comes_first(ctx: Context[JobQueue]) -> None:
    claimed = await _claimed(
        ctx,
        a={"payload": {"tenant": {"id": "x"}}, "group_key": "one"},
        b={"payload": {"tenant": {"id": "x"}}, "group_key": "two"},
        c={"payload": {"tenant": {"id": "y"}}, "group_key": "one"},
    )
    ctx.expect("stages claimed", claimed).equals(["a", "c"])
