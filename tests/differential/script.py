"""A random script of calls, the same for every adapter.

A call names earlier answers by position (the third claim, the newest stage), so it means the same on each adapter as
long as their answers are the same. The script of a seed never changes: it is drawn without looking at any answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tests.worked_examples.examples import FAR_AHEAD, LONG_AGO, START, annotation, call, event, job, run, stage, step
from workflow_adapters import (
    AnnotationFilters,
    CreateDefinitionInput,
    CreateLogInput,
    JobFilters,
    LogLevel,
    RunFilters,
    ServedDefinition,
    Status,
    StepKind,
    StepRecordExpectation,
    StepRecordPatch,
    StepStatus,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
)

RUNS: Final = [f"r{n}" for n in range(12)]
STAGES: Final = [f"s{n}" for n in range(6)]
TOPICS: Final = ["a_b", "axb", "a%b", "A_b", "ab\\c", "b"]
VALUES: Final[list[Any]] = [None, 0, "", [], {}, False, 1e23, -0.0, 2**70, "ü\u2028", {"k": [1.0, {"n": None}]}]


@dataclass(frozen=True)
class Call:
    """`args` is given the answers so far and returns the arguments, or None to leave the call out."""

    port: str
    method: str
    args: Callable[[Answers], tuple[Any, ...] | None]


@dataclass(frozen=True)
class Advance:
    """The clock moves on."""

    span: timedelta


class Answers:
    """What earlier calls gave, by kind, in order."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.claims: list[Any] = []
        self.events: list[str] = []
        self.leases: list[Any] = []
        self.fences: list[Any] = []


class Draw:
    """Draws calls from a seeded generator.

    With `database_clock` the queue's clock can not be moved: what its calls compare with now lies far from it.
    """

    def __init__(self, seed: int, *, database_clock: bool = False) -> None:
        self._random = random.Random(seed)
        self._database_clock = database_clock
        self._makers = [name for name in dir(self) if name.startswith("make_")]

    def script(self, length: int) -> list[Call | Advance]:
        return [getattr(self, self._random.choice(self._makers))() for _ in range(length)]

    def _one(self, options: list[Any]) -> Any:
        return self._random.choice(options)

    def _maybe(self, value: Any) -> Any:
        return value if self._random.random() < 0.5 else None

    def _instant(self) -> Any:
        return START + timedelta(milliseconds=self._random.randrange(-100_000, 400_000))

    def _job_instant(self) -> Any:
        return self._one([LONG_AGO, FAR_AHEAD]) if self._database_clock else self._instant()

    def _of(self, kind: str) -> Callable[[Answers], Any]:
        back = self._random.randrange(6)
        return lambda answers: getattr(answers, kind)[-1 - back] if len(getattr(answers, kind)) > back else None

    def _serves(self) -> Any:
        pairs = [ServedDefinition(workflow_id=w, version=v) for w in ("w", "x") for v in ("v1", "v2")]
        return self._one([None, None, "all", [], [self._one(pairs)], pairs])

    def make_advance(self) -> Advance:
        spans = [0, 1000, 60_000] if self._database_clock else [0, 1, 10, 1000, 60_000]
        return Advance(timedelta(milliseconds=self._one(spans)))

    # Runs, definitions

    def make_create_run(self) -> Call:
        given = run(
            self._one(RUNS),
            priority=self._one([1, 5, 9]),
            input=self._one(VALUES),
            metadata=self._one(VALUES),
            workflow_id=self._one(["w", "x"]),
            definition_version=self._one([None, "v1", "v2"]),
        )
        return Call("persistence", "create_run", lambda _: (given,))

    def make_update_run(self) -> Call:
        patch = UpdateRunInput(
            **self._some(
                status=self._one(list(Status)),
                output=self._one(VALUES),
                duration=self._one([None, 0, 5]),
                completed_at=self._one([None, self._instant()]),
                total_cost=self._one([0.1, 2.5]),
                expected_version=self._one([1, 2, 3]),
            )
        )
        id = self._one([*RUNS, "nope"])
        return Call("persistence", "update_run", lambda _: (id, patch))

    def make_read_run(self) -> Call:
        id = self._one(RUNS)
        return Call("persistence", self._one(["get_run", "get_run_status"]), lambda _: (id,))

    def make_stuck(self) -> Call:
        since = self._instant()
        return Call("persistence", "get_stuck_runs", lambda _: (since,))

    def make_claim_run(self) -> Call:
        now, serves = self._maybe(self._instant()), self._serves()
        return Call("persistence", "claim_next_pending_run", lambda _: (now, serves))

    def make_purgeable(self) -> Call:
        cutoff, statuses, limit = self._instant(), [Status.COMPLETED, Status.FAILED], self._one([0, 2, 50])
        return Call("persistence", "list_runs_for_purge", lambda _: (cutoff, statuses, limit))

    def make_delete_run(self) -> Call:
        id = self._one([*RUNS[:3], "nope"])
        return Call("persistence", "delete_run", lambda _: (id,))

    def make_definition(self) -> Call:
        given = CreateDefinitionInput(
            workflow_id="w", version=self._one(["v1", "v2"]), snapshot=self._one(VALUES), structure_hash="h"
        )
        return Call("persistence", "insert_definition_if_absent", lambda _: (given,))

    def make_count(self) -> Call:
        args = (self._maybe("w"), self._maybe("v1"), self._maybe([self._one(list(Status))]))
        return Call("persistence", "count_runs_by_definition_version", lambda _: args)

    # Stages, logs, annotations

    def make_stage(self) -> Call:
        given = self._stage()
        return Call("persistence", "create_stage", lambda _: (given,))

    def make_upsert(self) -> Call:
        given = UpsertStageInput(create=self._stage(), update=self._stage_patch())
        return Call("persistence", "upsert_stage", lambda _: (given,))

    def make_update_stage(self) -> Call:
        patch, chosen = self._stage_patch(), self._of("stages")
        return Call("persistence", "update_stage", lambda answers: (chosen(answers) or "nope", patch))

    def make_list_stages(self) -> Call:
        args = (self._one(RUNS), self._maybe(self._one(list(Status))), self._one(["asc", "desc"]))
        return Call("persistence", "get_stages_by_run", lambda _: args)

    def make_suspended(self) -> Call:
        args = (self._instant(), self._one([None, 1]), self._serves())
        return Call("persistence", "get_suspended_stages", lambda _: args)

    def make_delete_stage(self) -> Call:
        chosen = self._of("stages")
        return Call("persistence", "delete_stage", lambda answers: (chosen(answers) or "nope",))

    def make_log(self) -> Call:
        chosen, run_id, level = self._of("stages"), self._one(RUNS), self._one(list(LogLevel))
        metadata = self._one(VALUES)

        def args(answers: Answers) -> tuple[Any, ...]:
            log = CreateLogInput(
                level=level, message="m\0", workflow_run_id=run_id, workflow_stage_id=chosen(answers), metadata=metadata
            )
            return (log,)

        return Call("persistence", "create_log", args)

    def make_annotate(self) -> Call:
        batch = [
            annotation(
                self._one(TOPICS),
                self._one(RUNS[:8]),
                value=self._one(VALUES),
                idempotency_key=self._one([None, "i", "j"]),
                attempt=self._one([0, 1]),
                scope_id=self._one([None, "x"]),
            )
            for _ in range(self._random.randrange(4))
        ]
        return Call("persistence", "append_annotations", lambda _: (batch,))

    def make_list_annotations(self) -> Call:
        filters = AnnotationFilters(
            **self._some(
                key=self._one(TOPICS),
                key_prefix=self._one(["a_", "a%", "ab\\", ""]),
                scope_id=self._one([None, "x"]),
                attempt=1,
                since=self._instant(),
                limit=self._one([1, 100]),
            )
        )
        run_id = self._one(RUNS[:8])
        return Call("persistence", "list_annotations", lambda _: (run_id, filters))

    # Outbox, idempotency

    def make_append(self) -> Call:
        batch = [
            event(self._one(RUNS), payload=self._one(VALUES), occurred_at=self._instant())
            for _ in range(self._random.randrange(4))
        ]
        return Call("persistence", "append_outbox_events", lambda _: (batch,))

    def make_unpublished(self) -> Call:
        limit = self._one([1, 100])
        return Call("persistence", "get_unpublished_outbox_events", lambda _: (limit,))

    def make_claim_events(self) -> Call:
        limit = self._one([1, 3, 100])
        return Call("persistence", "claim_unpublished_outbox_events", lambda _: (limit,))

    def make_lease_events(self) -> Call:
        # A lease whose token is taken already ends some milliseconds later: none may end where the clock can stand.
        spans = [500, 90_500] if self._database_clock else [1, 500, 90_000]
        args = (self._one([1, 3]), timedelta(milliseconds=self._one(spans)))
        return Call("persistence", "lease_outbox_events", lambda _: args)

    def make_end_lease(self) -> Call:
        chosen, confirm = self._of("leases"), self._random.random() < 0.7

        def confirmed(answers: Answers) -> tuple[Any, ...] | None:
            lease = chosen(answers)
            return lease and (lease.token, [e.id for e in lease.events])

        def released(answers: Answers) -> tuple[Any, ...] | None:
            lease = chosen(answers)
            return lease and (lease.token,)

        if confirm:
            return Call("persistence", "confirm_outbox_events", confirmed)
        return Call("persistence", "release_outbox_lease", released)

    def make_event_verb(self) -> Call:
        chosen = self._of("events")
        verb = self._one(["increment_outbox_retry_count", "move_outbox_event_to_dlq"])
        return Call("persistence", verb, lambda answers: (chosen(answers) or "nope",))

    def make_events_verb(self) -> Call:
        chosen = self._of("events")
        verb = self._one(["release_outbox_events", "mark_outbox_events_published"])
        return Call("persistence", verb, lambda answers: ([chosen(answers) or "nope", "nope"],))

    def make_replay(self) -> Call:
        return Call("persistence", "replay_dlq_events", lambda _: (2,))

    def make_acquire(self) -> Call:
        stale = self._one([None, timedelta(0), timedelta(seconds=30)])
        args = (self._one(["k1", "k2"]), "c", self._maybe(self._instant()), stale)
        return Call("persistence", "acquire_idempotency_key", lambda _: args)

    def make_end_key(self) -> Call:
        key, fence, result = self._one(["k1", "k2"]), self._of("fences"), self._one(VALUES)
        fenced = self._random.random() < 0.7
        if self._random.random() < 0.3:
            return Call(
                "persistence", "complete_idempotency_key", lambda a: (key, "c", result, fence(a) if fenced else None)
            )
        return Call("persistence", "release_idempotency_key", lambda a: (key, "c", fence(a) if fenced else None))

    # Jobs

    def make_enqueue(self) -> Call:
        batch = [
            job(
                self._one(STAGES),
                self._one(RUNS),
                workflow_id=self._one(["w", "x"]),
                priority=self._one([1, 5, 9]),
                payload=self._one([None, {}, {"v": self._one(VALUES)}]),
                scheduled_for=self._maybe(self._job_instant()),
                group_key=self._one([None, "g", "h"]),
                definition_version=self._one([None, "v1"]),
            )
            for _ in range(self._random.randrange(5))
        ]
        return Call("job_queue", "enqueue_parallel", lambda _: (batch,))

    def make_dequeue(self) -> Call:
        serves = self._serves()
        return Call("job_queue", "dequeue", lambda _: (serves,))

    make_dequeue_again = make_dequeue

    def make_dequeue_many(self) -> Call:
        args = (self._one([0, 1, 3]), self._serves())
        return Call("job_queue", "dequeue_many", lambda _: args)

    def make_acknowledge(self) -> Call:
        verb = self._one(["complete", "suspend", "fail", "fail", "defer"])
        extra: dict[str, tuple[Any, ...]] = {
            "complete": (),
            "suspend": (self._job_instant(),),
            "fail": ("e\0", self._random.random() < 0.8),
            "defer": (self._job_instant(), "later"),
        }
        chosen, fenced = self._of("claims"), self._random.random() < 0.8

        def args(answers: Answers) -> tuple[Any, ...] | None:
            claim = chosen(answers)
            return claim and (claim.job_id, *extra[verb], claim.fence if fenced else None)

        return Call("job_queue", verb, args)

    make_acknowledge_again = make_acknowledge

    def make_claims_verb(self) -> Call:
        verb = self._one(["complete_many", "heartbeat"])
        first, second = self._of("claims"), self._of("claims")

        def args(answers: Answers) -> tuple[Any, ...]:
            found = {claim.job_id: claim for claim in (first(answers), second(answers)) if claim}
            return ([(claim.job_id, claim.fence) for claim in found.values()],)

        return Call("job_queue", verb, args)

    def make_touch(self) -> Call:
        chosen = self._of("claims")
        return Call("job_queue", "touch_job", lambda a: (chosen(a).job_id if chosen(a) else "nope",))

    def make_sweep(self) -> Call:
        spans = [-(10**10), 10**10] if self._database_clock else [-1, 0, 1000, 300_000]
        span = timedelta(milliseconds=self._one(spans))
        fail_spent = self._random.random() < 0.5
        runaway = span if self._database_clock else max(span, timedelta(seconds=1))
        if self._random.random() < 0.6:
            return Call("job_queue", "release_stale_jobs", lambda _: (span, fail_spent))
        return Call("job_queue", "expire_runaway_jobs", lambda _: (runaway,))

    def make_jobs(self) -> Call:
        run_id = self._one(RUNS)
        return Call("job_queue", "get_jobs_by_workflow_run", lambda _: (run_id,))

    def make_remove_jobs(self) -> Call:
        run_id, stages = self._one(RUNS[:4]), [self._one(STAGES), "nope"]
        if self._random.random() < 0.5:
            return Call("job_queue", "cancel_by_run", lambda _: (run_id,))
        return Call("job_queue", "delete_by_run_and_stages", lambda _: (run_id, stages))

    # Steps, model calls

    def make_step(self) -> Call:
        chosen, name, seq = self._of("stages"), self._one(["a", "b", "é"]), self._one([1, 2])
        result, kind = self._one(VALUES), self._one(list(StepKind))
        return Call(
            "step_ledger", "claim", lambda a: (step(chosen(a) or "nope", name, seq=seq, result=result, kind=kind),)
        )

    def make_step_update(self) -> Call:
        chosen, name, patch = self._of("stages"), self._one(["a", "b"]), self._step_patch()
        if self._random.random() < 0.5:
            return Call("step_ledger", "update", lambda a: (chosen(a) or "nope", name, patch))
        expected = StepRecordExpectation(status=self._one(list(StepStatus)), **self._some(attempt=1))
        return Call("step_ledger", "compare_and_set", lambda a: (chosen(a) or "nope", name, expected, patch))

    def make_steps(self) -> Call:
        chosen, keep = self._of("stages"), self._one([[], ["a"]])
        verb = self._one(["list", "list", "list", "clear_except"])
        extra = (keep,) if verb == "clear_except" else ()
        return Call("step_ledger", verb, lambda a: (chosen(a) or "nope", *extra))

    def make_log_call(self) -> Call:
        given = call(
            self._one(TOPICS),
            cost=self._one([0.1, 0.2, 1e-9, 3.0]),
            model_key=self._one(["k", "l"]),
            batch_id=self._one([None, "b"]),
            request_id=self._one([None, "1", "2"]),
            metadata=self._one([None, {}, {"batchId": "m"}]),
        )
        return Call("ai_call_logger", "log_call", lambda _: (given,))

    def make_batch(self) -> Call:
        results = [
            call(
                self._one(TOPICS),
                request_id=self._one([None, "1", "2"]),
                metadata=self._one([None, {"requestId": "9"}]),
            )
            for _ in range(self._random.randrange(3))
        ]
        return Call("ai_call_logger", "log_batch_results", lambda _: ("b2", results))

    def make_read_calls(self) -> Call:
        prefix = self._one(["a_", "a", "", "ab\\"])
        verb, args = self._one(
            [("get_stats", prefix), ("list_calls", prefix), ("is_recorded", "b"), ("is_recorded", "m")]
        )
        return Call("ai_call_logger", verb, lambda _: (args,))

    # Operations

    def make_stats(self) -> Call:
        return Call("operations", self._one(["queue_stats", "outbox_stats"]), lambda _: ())

    def make_listing(self) -> Call:
        limit = self._one([1, 5, 100])
        runs = RunFilters(**self._some(status=self._one(list(Status)), workflow_id="w", definition_version=None))
        jobs = JobFilters(**self._some(status=self._one(list(Status)), workflow_run_id=self._one(RUNS)))
        verb, args = self._one(
            [
                ("list_runs", (runs, None, limit)),
                ("list_jobs", (jobs, None, limit)),
                ("list_logs", (self._one(RUNS), None, limit)),
                ("list_dead_outbox_events", (None, limit)),
            ]
        )
        return Call("operations", verb, lambda _: args)

    def make_job_verb(self) -> Call:
        chosen, verb = self._of("claims"), self._one(["get_job", "requeue_job", "cancel_job"])
        return Call("operations", verb, lambda a: (chosen(a).job_id if chosen(a) else "nope",))

    def make_purge(self) -> Call:
        before, limit = self._instant() - timedelta(seconds=90), self._one([0, 1, 5])
        verb, args = self._one(
            [
                ("purge_jobs", self._job_purge(before, limit)),
                ("purge_outbox_events", (before, limit)),
                ("purge_dead_outbox_events", (before, limit)),
                ("purge_idempotency_keys", (self._random.random() < 0.5, before, limit)),
                ("purge_ai_calls", (before, limit)),
            ]
        )
        return Call("operations", verb, lambda _: args)

    def _job_purge(self, before: Any, limit: int) -> tuple[Any, int]:
        # Which jobs a small limit takes depends on when each ended, and only one of the two clocks moves.
        return (self._job_instant(), self._one([0, 1000])) if self._database_clock else (before, limit)

    # Parts

    def _some(self, **fields: Any) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if self._random.random() < 0.4}

    def _stage(self) -> Any:
        fields = self._some(
            status=self._one(list(Status)), started_at=self._one([None, self._instant()]), config=self._one(VALUES)
        )
        numbers = {"stage_number": self._one([1, 2]), "execution_group": self._one([1, 2])}
        return stage(self._one(RUNS), self._one(STAGES), **numbers, **fields)

    def _stage_patch(self) -> UpdateStageInput:
        return UpdateStageInput(
            **self._some(
                status=self._one([Status.SUSPENDED, Status.COMPLETED, Status.RUNNING]),
                next_poll_at=self._one([None, self._instant()]),
                output_data=self._one(VALUES),
                suspended_state=self._one(VALUES),
                poll_interval=self._one([None, 0, 7]),
                error_message=self._one([None, "", "e\ud800"]),
                expected_version=self._one([1, 2, 3]),
            )
        )

    def _step_patch(self) -> StepRecordPatch:
        return StepRecordPatch(
            **self._some(
                status=self._one(list(StepStatus)),
                attempt=self._one([1, 2]),
                result=self._one(VALUES),
                error=self._one([None, "", "x"]),
                lease_expires_at=self._one([None, self._instant()]),
                wait_state=self._one([None, {}, {"k": 1}]),
            )
        )
