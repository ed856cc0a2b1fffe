"""Mistakes in persistence."""

from typing import Final

from tests.conformance.suites.mutation import Mutant
from workflow_adapters.memory import annotations, idempotency, outbox, runs, stages
from workflow_adapters.memory.annotations import MemoryAnnotations
from workflow_adapters.memory.definitions import MemoryDefinitions
from workflow_adapters.memory.idempotency import MemoryIdempotency
from workflow_adapters.memory.outbox import MemoryOutbox
from workflow_adapters.memory.runs import MemoryRuns
from workflow_adapters.memory.session import StoreSession, TransactionSession
from workflow_adapters.memory.stages import MemoryStages
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.memory.tables import OutboxTable, StagesTable

PERSISTENCE_MUTANTS: Final = (
    Mutant("WP-RUN-02", runs, "_new_run", "metadata=copied(run.metadata)", "metadata=None"),
    Mutant(
        "WP-RUN-06",
        MemoryRuns,
        "create_run",
        'raise AlreadyExistsError("run", record.id)',
        "return detached(tables.runs.put(record))",
    ),
    Mutant("WP-UPDATE-03", MemoryRuns, "update_run", "version=run.version + 1, ", ""),
    Mutant("WP-UPDATE-04", MemoryRuns, "update_run", "updated_at=self._session.now(), ", ""),
    Mutant(
        "WP-UPDATE-06",
        MemoryRuns,
        "update_run",
        'check_version("run", id, patch.expected_version, run.version)',
        "pass",
    ),
    Mutant("WP-UPDATE-06", runs, "check_version", "expected != actual", "expected > actual"),
    Mutant("WP-NULL-05", runs, "given", "value is not UNSET", "value is not UNSET and value is not None"),
    Mutant("WP-NULL-14", stages, "given", "value is not UNSET", "value is not UNSET and (value or value is None)"),
    Mutant("WP-CLAIM-02", MemoryRuns, "claim_next_pending_run", "now = now or self", "now = self"),
    Mutant(
        "WP-CLAIM-01", MemoryRuns, "claim_next_pending_run", "updated_at=now, version=run.version + 1", "updated_at=now"
    ),
    Mutant(
        "WP-SERVES-04",
        runs,
        "serves_run",
        "is_served(run.workflow_id, run.definition_version, served(serves))",
        "is_served(run.workflow_id, None, served(serves))",
    ),
    Mutant(
        "WP-STUCK-01", MemoryRuns, "get_stuck_runs", "run.updated_at <= stuck_since", "run.updated_at < stuck_since"
    ),
    Mutant("WP-STUCK-03", MemoryRuns, "get_stuck_runs", "all(stage", "not tables.stages.by_run[run.id] or any(stage"),
    Mutant("WP-STUCK-04", MemoryRuns, "get_stuck_runs", "stage.updated_at <= stuck", "stage.updated_at < stuck"),
    Mutant(
        "WP-PURGE-02",
        MemoryRuns,
        "list_runs_for_purge",
        "run.completed_at or run.updated_at",
        "run.completed_at or cutoff",
    ),
    Mutant("WP-PURGE-05", MemoryRuns, "list_runs_for_purge", "(finished_at(run), run.id)", "run.id"),
    Mutant("WP-DELETE-01", MemoryRuns, "delete_run", "tables.annotations.remove(annotation)", "pass"),
    Mutant("WP-DEF-03", MemoryDefinitions, "insert_definition_if_absent", "if stored is None:", "if True:"),
    Mutant("WP-COUNT-01", MemoryDefinitions, "count_runs_by_definition_version", "min(run", "max(run"),
    Mutant("WP-STAGE-01", MemoryStages, "create_stage", "Status.PENDING", "Status.RUNNING"),
    Mutant("WP-STAGE-05", MemoryStages, "create_stage", "require_run(tables, stage.workflow_run_id)", "pass"),
    Mutant(
        "WP-STAGE-10", StagesTable, "__init__", "(stage.execution_group, stage.stage_number)", "(stage.stage_number,)"
    ),
    Mutant("WP-STAGE-22", stages, "_updated", "version=stage.version + 1, ", ""),
    Mutant(
        "WP-STAGE-32",
        stages,
        "remove_stage",
        "tables.annotations.put(replace(annotation, workflow_stage_record_id=None))",
        "tables.annotations.remove(annotation)",
    ),
    Mutant("WP-UPSERT-01", MemoryStages, "upsert_stage", "Status.RUNNING, now", "Status.PENDING, None"),
    Mutant(
        "WP-UPSERT-05",
        MemoryStages,
        "upsert_stage",
        "_updated(stored, stage.update, now)",
        "_updated(replace(stored, created_at=now), stage.update, now)",
    ),
    Mutant(
        "WP-SUSPENDED-01",
        MemoryStages,
        "get_suspended_stages",
        "stage.next_poll_at <= before",
        "stage.next_poll_at < before",
    ),
    Mutant("WP-SUSPENDED-06", MemoryStages, "get_suspended_stages", "and _serves_stage(tables, stage, serves)", ""),
    Mutant(
        "WP-ANN-04",
        MemoryAnnotations,
        "append_annotations",
        "for annotation in annotations:\n            same",
        "for annotation in reversed(annotations):\n            same",
    ),
    Mutant(
        "WP-ANN-07", MemoryAnnotations, "append_annotations", "require_run(tables, annotation.workflow_run_id)", "pass"
    ),
    Mutant(
        "WP-FILTER-03",
        annotations,
        "_has_key",
        "key.startswith(wanted.key_prefix)",
        "key.lower().startswith(wanted.key_prefix.lower())",
    ),
    Mutant(
        "WP-FILTER-05",
        annotations,
        "_has_key",
        "return key == wanted.key",
        "return key == wanted.key and key.startswith(wanted.key_prefix or key)",
    ),
    Mutant(
        "WP-FILTER-06",
        annotations,
        "_passes",
        "wanted.attempt in (UNSET, annotation.attempt)",
        "(wanted.attempt or annotation.attempt) == annotation.attempt",
    ),
    Mutant("WP-FILTER-07", annotations, "_passes", "wanted.scope_id in (UNSET,", "wanted.scope_id in (UNSET, None,"),
    Mutant("WP-FILTER-09", annotations, "_passes", "wanted.since <= annotation", "wanted.since < annotation"),
    Mutant(
        "WP-OUT-06", MemoryOutbox, "append_outbox_events", "tables.outbox.by_run.last", "tables.outbox.unpublished.last"
    ),
    Mutant("WP-FLUSH-02", outbox, "_listed", "(event.workflow_run_id, event.sequence)", "event.sequence"),
    Mutant(
        "WP-FLUSH-06",
        outbox,
        "select_events",
        "rotation.last_run = selected[-1].event.workflow_run_id",
        'rotation.last_run = ""',
    ),
    Mutant(
        "WP-DLQ-01",
        OutboxTable,
        "__init__",
        "row.event.published_at is None and row.event.dlq_at is None",
        "row.event.published_at is None",
    ),
    Mutant("WP-DLQ-05", MemoryOutbox, "replay_dlq_events", "published_at=None, ", ""),
    Mutant("WP-DLQ-04", MemoryOutbox, "replay_dlq_events", ", retry_count=0", ""),
    Mutant(
        "WP-LEASE-02",
        outbox,
        "select_events",
        "if not any(is_leased(row, now) for row in events)",
        "if not is_leased(events[-1], now)",
    ),
    Mutant("WP-LEASE-05", MemoryOutbox, "confirm_outbox_events", " and is_leased(row, now)", ""),
    Mutant("WP-LEASE-06", MemoryOutbox, "confirm_outbox_events", "row.lease_token == token and", ""),
    Mutant(
        "WP-IDEM-06",
        MemoryIdempotency,
        "acquire_idempotency_key",
        "< stale_in_progress_after",
        "<= stale_in_progress_after",
    ),
    Mutant(
        "WP-IDEM-02",
        MemoryIdempotency,
        "acquire_idempotency_key",
        "stale_in_progress_after is None or now - row.created_at < stale_in_progress_after",
        "now - row.created_at < (stale_in_progress_after or later(now, MILLISECOND) - now)",
    ),
    Mutant(
        "WP-IDEM-07",
        MemoryIdempotency,
        "acquire_idempotency_key",
        "replace(row, created_at=max(now, later(row.created_at, MILLISECOND)))",
        "replace(row, id=new_id())",
    ),
    Mutant(
        "WP-IDEM-25",
        MemoryIdempotency,
        "acquire_idempotency_key",
        "max(now, later(row.created_at, MILLISECOND))",
        "now",
    ),
    Mutant("WP-IDEM-23", MemoryIdempotency, "complete_idempotency_key", "not _holds(row, fence)", "row is None"),
    Mutant("WP-IDEM-27", idempotency, "_holds", "row.in_progress and ", ""),
    Mutant(
        "WP-IDEM-14",
        MemoryIdempotency,
        "release_idempotency_key",
        "row is not None and row.in_progress",
        "row is not None",
    ),
    Mutant("WP-TX-06", StoreSession, "read", "self.home.store.committed", "self.home.store.working"),
    Mutant("WP-TX-05", TransactionSession, "read", "self.home.store.working", "self.home.store.committed"),
    Mutant("WP-TX-21", TransactionSession, "transaction", "self.home.store.roll_back_to(savepoint)", "pass"),
    Mutant(
        "WP-TX-03",
        MemoryStore,
        "writing",
        "finally:\n        # Nothing is left in the journal by a commit.\n        self.roll_back_to(0)",
        "finally:\n        self._commit()",
    ),
    Mutant("WP-TX-28", MemoryStore, "_take_turn", "if inside_transaction_of(self):", "if False:"),
)
