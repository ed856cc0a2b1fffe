"""Records <-> rows, and patches as SET lists."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workflow_adapters.errors import BackendError
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.inputs.step_ledger import StepRecordPatch
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status, StepStatus
from workflow_adapters.sql.columns import instant_to_ms, ms_to_instant, stored_name
from workflow_adapters.sql.mapping import RecordMapping, set_list
from workflow_adapters.sql.outbox_lease import LEASE_OFFSET, read_events
from workflow_adapters.sql.tables import CLAIMED_JOB, JOB, MAPPINGS, RUN, STAGE, STEP

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_MS = instant_to_ms(NOW)


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("id", "id"), ("workflow_run_id", "workflowRunId"), ("dlq_at", "dlqAt"), ("next_poll_at", "nextPollAt")],
)
def test_names_are_mechanical(attribute: str, name: str) -> None:
    assert stored_name(attribute) == name


@pytest.mark.parametrize("mapping", MAPPINGS.values(), ids=MAPPINGS)
def test_every_row_of_nulls_reads_as_a_record_of_none(mapping: RecordMapping[Any]) -> None:
    record = mapping.read([None] * len(mapping.columns))
    assert all(getattr(record, field.name) in (None, "", {}) for field in fields(record))


@pytest.mark.parametrize(
    ("attribute", "stored"), [("status", "PAUSED"), ("input", "[" * 200_000 + "]" * 200_000), ("started_at", 10**18)]
)
def test_a_foreign_row_that_no_record_can_hold_is_named(attribute: str, stored: Any) -> None:
    row: list[Any] = [None] * len(RUN.columns)
    row[0], row[RUN.columns.index(RUN[attribute])] = "r-1", stored
    with pytest.raises(BackendError, match="workflow_runs can not be read, that of 'r-1'") as caught:
        RUN.read(row)
    assert not caught.value.retryable


def test_a_run_is_read_from_its_row() -> None:
    row = ["r", NOW_MS, NOW_MS + 1, 2, "w", "name", "type", "FAILED", None, NOW_MS, 7, '{"a":1e3}', "null", "{}"]
    assert RUN.read([*row, 0.5, 3, 5, None, None, 1]) == WorkflowRunRecord(
        id="r",
        created_at=NOW,
        updated_at=NOW + timedelta(milliseconds=1),
        version=2,
        workflow_id="w",
        workflow_name="name",
        workflow_type="type",
        status=Status.FAILED,
        started_at=None,
        completed_at=NOW,
        duration=7,
        input={"a": 1000.0},
        output=None,
        config={},
        total_cost=0.5,
        total_tokens=3,
        priority=5,
        metadata=None,
        definition_version=None,
        redrive_count=1,
    )


def test_reserved_members_come_out_of_a_payload() -> None:
    payload = '{"_workflowId":"w","_groupKey":"g","_definitionVersion":"v","n":12345678901234567890}'
    claimed = CLAIMED_JOB.read(["j", "r", "s", 5, 1, 3, payload, NOW_MS])
    assert (claimed.workflow_id, claimed.group_key, claimed.definition_version) == ("w", "g", "v")
    assert claimed.payload == {"n": 12345678901234567890}
    assert claimed.fence.started_at == NOW


def test_a_dead_job_reads_with_an_empty_payload() -> None:
    values: dict[str, Any] = dict.fromkeys([column.attribute for column in JOB.columns], None)
    job = JOB.read(list({**values, "id": "j", "payload": "[1]"}.values()))
    assert (job.payload, job.workflow_id) == ({}, "")


def test_the_columns_of_a_mapping_are_found_by_attribute() -> None:
    assert STAGE["input_data"].name == "inputData"
    assert STAGE["input_data"].quoted == '"inputData"'
    assert CLAIMED_JOB["job_id"].name == "id"


def test_a_patch_writes_what_it_holds_none_included() -> None:
    patch = UpdateRunInput(status=Status.FAILED, output=None, started_at=NOW, expected_version=4)
    sets = set_list(RUN, patch, first=3)
    assert sets.text == (', status = $3::text::@Status, "startedAt" = $4::text::timestamp, output = $5::text::jsonb')
    assert sets.args == (Status.FAILED, NOW, None)


def test_an_empty_patch_is_an_empty_list() -> None:
    assert set_list(STAGE, UpdateStageInput(expected_version=1), first=3).text == ""


def test_json_of_a_patch_is_text() -> None:
    patch = StepRecordPatch(status=StepStatus.COMPLETED, result=[1e23, "é"])
    assert set_list(STEP, patch, first=1).args == ("completed", '[100000000000000000000000.0,"é"]')


def test_columns_that_the_database_lacks_are_left_out() -> None:
    patch = UpdateRunInput(definition_version="v", total_tokens=1, redrive_count=2)
    sets = set_list(RUN, patch, first=2, absent=("definition_version", "redrive_count"))
    assert (sets.text, sets.args) == (', "totalTokens" = $2', (1,))


@pytest.mark.parametrize("ms", [0, -1, 1, NOW_MS, instant_to_ms(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))])
def test_instants_round_trip(ms: int) -> None:
    assert instant_to_ms(ms_to_instant(ms)) == ms


def test_a_leased_event_is_not_published() -> None:
    def event(published_at: int | None) -> OutboxRecord:
        row = ["e", "r", 1, "type", "{}", "cause", NOW_MS, published_at, 0, None]
        (record,) = read_events([row], NOW)
        return record

    assert event(None).published_at is None
    assert event(NOW_MS).published_at == NOW
    assert event(instant_to_ms(NOW + LEASE_OFFSET + timedelta(seconds=30))).published_at is None
