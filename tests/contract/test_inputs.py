"""Inputs check themselves when they are built: the field and the path are named, nothing is stored half-way."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pkgutil
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import SimpleNamespace
from typing import Any

import pytest

import workflow_adapters.inputs
from workflow_adapters import (
    UNSET,
    AnnotationFilters,
    CreateAICallInput,
    CreateAnnotationInput,
    CreateLogInput,
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    EnqueueJobInput,
    InvalidValueError,
    JobQueueFairness,
    NewStep,
    RetryBackoff,
    Status,
    StepKind,
    StepRecordPatch,
    StepStatus,
    UpdateRunInput,
    UpdateStageInput,
)

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def run(**fields: Any) -> CreateRunInput:
    return CreateRunInput(**{"workflow_id": "w", "workflow_name": "W", "workflow_type": "t", "input": None, **fields})


def event(**fields: Any) -> CreateOutboxEventInput:
    return CreateOutboxEventInput(
        **{
            "workflow_run_id": "r",
            "event_type": "e",
            "payload": {},
            "causation_id": "c",
            "occurred_at": NOON,
            **fields,
        }
    )


def job(**fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(**{"workflow_run_id": "r", "workflow_id": "w", "stage_id": "s", **fields})


def step(**fields: Any) -> NewStep:
    return NewStep(
        **{
            "stage_record_id": "s",
            "step_id": "a",
            "seq": 1,
            "kind": StepKind.RUN,
            "status": StepStatus.RUNNING,
            **fields,
        }
    )


def call(**fields: Any) -> CreateAICallInput:
    return CreateAICallInput(
        **{
            "topic": "t",
            "call_type": "text",
            "model_key": "k",
            "model_id": "m",
            "prompt": "p",
            "response": "r",
            "input_tokens": 1,
            "output_tokens": 2,
            "cost": 0.5,
            **fields,
        }
    )


def annotation(**fields: Any) -> CreateAnnotationInput:
    return CreateAnnotationInput(**{"workflow_run_id": "r", "scope": "run", "key": "k", "value": 1, **fields})


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("build", "fields", "path", "why"),
    [
        (event, {"payload": {"items": [0, 1, 2, {"price": float("nan")}]}}, "payload.items[3].price", "NaN"),
        (event, {"payload": [float("inf")]}, "payload[0]", "Infinity"),
        (event, {"payload": [[float("-inf")]]}, "payload[0][0]", "-Infinity"),
        (event, {"payload": {"a": {1: 2}}}, "payload.a", "JSON keys are str"),
        (event, {"payload": {"at": NOON}}, "payload.at", "datetime"),
        (event, {"payload": {"a b": {1, 2}}}, 'payload["a b"]', "set"),
        (event, {"payload": (1, 2)}, "payload", "tuple"),
        (event, {"payload": Decimal(1)}, "payload", "Decimal"),
        (event, {"payload": b"x"}, "payload", "bytes"),
        (event, {"payload": "a\0b"}, "payload", "U+0000"),
        (event, {"payload": {"k\0": 1}}, "payload.'k\\x00'", "U+0000"),
        (event, {"payload": ["\ud800"]}, "payload[0]", "lone surrogate"),
        (event, {"payload": {"n": 10**4000}}, "payload.n", "4000 digits"),
        (event, {"occurred_at": datetime(2026, 1, 2)}, "occurred_at", "naive"),  # noqa: DTZ001  # the refused value
        (event, {"occurred_at": "2026-01-02"}, "occurred_at", "datetime"),
        (event, {"workflow_run_id": ""}, "workflow_run_id", "empty"),
        (event, {"workflow_run_id": "é" * 401}, "workflow_run_id", "800 bytes"),
        (event, {"event_type": "a\0"}, "event_type", "U+0000"),
        (event, {"causation_id": "\udfff"}, "causation_id", "lone surrogate"),
        (event, {"causation_id": 7}, "causation_id", "str"),
        (run, {"priority": 2**31}, "priority", "32-bit"),
        (run, {"priority": -(2**31) - 1}, "priority", "32-bit"),
        (run, {"priority": True}, "priority", "int"),
        (run, {"priority": 5.0}, "priority", "int"),
        (run, {"config": {"deep": float("nan")}}, "config.deep", "NaN"),
        (run, {"id": "x" * 801}, "id", "800 bytes"),
        (UpdateRunInput, {"duration": -1}, "duration", "negative"),
        (UpdateRunInput, {"total_tokens": -1}, "total_tokens", "negative"),
        (UpdateRunInput, {"total_tokens": None}, "total_tokens", "int"),
        (UpdateRunInput, {"total_cost": float("nan")}, "total_cost", "finite"),
        (UpdateRunInput, {"total_cost": None}, "total_cost", "float"),
        (UpdateRunInput, {"status": None}, "status", "PENDING"),
        (UpdateRunInput, {"status": "DONE"}, "status", "PENDING"),
        (UpdateRunInput, {"redrive_count": None}, "redrive_count", "int"),
        (UpdateRunInput, {"status": 10**5000}, "status", "some int is none of"),
        (UpdateRunInput, {"status": "x" * 5000}, "status", "x… is none of"),
        (run, {"config": {10**5000: 1}}, "config", "the key some int is"),
        (UpdateStageInput, {"poll_interval": -5}, "poll_interval", "negative"),
        (UpdateStageInput, {"attempt": None}, "attempt", "int"),
        (UpdateStageInput, {"error_message": 5}, "error_message", "str"),
        (job, {"payload": {"_workflowId": "x"}}, "payload._workflowId", "reserved"),
        (job, {"payload": {"_groupKey": "x"}}, "payload._groupKey", "reserved"),
        (job, {"payload": {"_definitionVersion": "x"}}, "payload._definitionVersion", "reserved"),
        (job, {"payload": [1]}, "payload", "dict"),
        (job, {"group_key": ""}, "group_key", "empty"),
        (step, {"wait_state": [1]}, "wait_state", "dict"),
        (step, {"kind": "nap"}, "kind", "run"),
        (StepRecordPatch, {"status": None}, "status", "pending"),
        (call, {"cost": float("inf")}, "cost", "finite"),
        (call, {"input_tokens": -1}, "input_tokens", "negative"),
        (call, {"output_tokens": 2**31}, "output_tokens", "32-bit"),
        (call, {"estimated_cost": float("nan")}, "estimated_cost", "finite"),
        (call, {"metadata": "x"}, "metadata", "dict"),
        (annotation, {"idempotency_key": ""}, "idempotency_key", "empty"),
        (annotation, {"value": {"x": object()}}, "value.x", "object"),
        (AnnotationFilters, {"limit": -1}, "limit", "negative"),
        (AnnotationFilters, {"key_prefix": "a\0"}, "key_prefix", "U+0000"),
        (AnnotationFilters, {"since": datetime(2026, 1, 1)}, "since", "naive"),  # noqa: DTZ001  # the refused value
        (JobQueueFairness, {"max_concurrent_per_group": 0}, "max_concurrent_per_group", "less than 1"),
        (JobQueueFairness, {"max_concurrent_per_group": 1, "group_by": "a..b"}, "group_by", "empty part"),
        (annotation, {"scope": UNSET}, "scope", "str"),
        (annotation, {"payload": UNSET}, "payload", "not a JSON value"),
        (run, {"priority": UNSET}, "priority", "int"),
        (AnnotationFilters, {"limit": UNSET}, "limit", "int"),
        (RetryBackoff, {"factor": 0.5}, "factor", "at least 1"),
        (RetryBackoff, {"base": timedelta(seconds=-1)}, "base", "negative"),
    ],
)
def test_an_invalid_value_is_refused_with_its_path(build: Any, fields: dict[str, Any], path: str, why: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        build(**fields)
    assert caught.value.path == path
    assert caught.value.field == next(iter(fields)) or caught.value.field in fields
    assert why in caught.value.why
    assert isinstance(caught.value, ValueError)


def test_nesting_is_allowed_to_256_levels() -> None:
    def nested(levels: int) -> Any:
        value: Any = 0
        for _ in range(levels):
            value = [value]
        return value

    assert event(payload=nested(256)).payload == nested(256)
    with pytest.raises(InvalidValueError, match="256 levels"):
        event(payload=nested(257))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidValueError, match="256 levels"):
        event(payload=loop)


def test_instants_are_truncated_to_the_millisecond_and_come_back_as_utc() -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    given = datetime(2026, 1, 2, 5, 30, 0, 678_900, tzinfo=kolkata)
    assert event(occurred_at=given).occurred_at == datetime(2026, 1, 2, 0, 0, 0, 678_000, tzinfo=UTC)
    assert event(occurred_at=given).occurred_at.tzinfo is UTC


def test_subclasses_are_stored_as_their_base_value() -> None:
    class Name(str):
        __slots__ = ()

    payload = event(payload={Name("k"): Colour.RED, "n": Level.HIGH, "l": type("L", (list,), {})([1])}).payload
    assert payload == {"k": "red", "n": 3, "l": [1]}
    assert isinstance(payload, dict)
    assert [type(key) for key in payload] == [str, str, str]
    assert [type(value) for value in payload.values()] == [str, int, list]


def test_negative_zero_is_stored_as_zero() -> None:
    assert str(event(payload=-0.0).payload) == "0.0"
    assert str(call(cost=-0.0).cost) == "0.0"


def test_json_is_copied_when_the_input_is_built() -> None:
    payload = {"items": [1]}
    built = event(payload=payload)
    payload["items"].append(2)
    assert built.payload == {"items": [1]}


def test_free_text_is_never_refused_for_its_characters() -> None:
    log = CreateLogInput(level="ERROR", message="a\0b\ud800c")  # pyright: ignore[reportArgumentType]  # a level by its value
    assert log.message == "a\ufffdb\ufffdc"
    assert UpdateStageInput(error_message="\0").error_message == "\ufffd"
    assert step(error="x\udfffy").error == "x\ufffdy"
    assert call(prompt="\0", response="\ud834").prompt == "\ufffd"


def test_a_status_may_be_given_by_its_value() -> None:
    assert UpdateRunInput(status="RUNNING").status is Status.RUNNING  # pyright: ignore[reportArgumentType]  # by value


def test_unset_means_absent_and_none_means_null() -> None:
    patch = UpdateRunInput(output=None)
    assert patch.output is None
    assert patch.completed_at is UNSET
    filters = AnnotationFilters(key=None, scope_id=None)
    assert filters.key is UNSET, "no key is null: the same as no filter"
    assert filters.scope_id is None, "a null scope_id can be asked for"


def test_every_field_of_every_input_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = 0
    for module in pkgutil.iter_modules(workflow_adapters.inputs.__path__, "workflow_adapters.inputs."):
        home = importlib.import_module(module.name)
        for kind in vars(home).values():
            if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.name):
                continue
            fields = {field.name for field in dataclasses.fields(kind)}
            checked: set[str] = set()
            monkeypatch.setattr(home, "normalise", lambda _target, into=checked, **checks: into.update(checks))
            blank = SimpleNamespace(**dict.fromkeys(fields, UNSET))
            with contextlib.suppress(
                AttributeError, TypeError
            ):  # what a class does beyond its checks needs real values
                vars(kind)["__post_init__"](blank)
            assert checked == fields, kind
            kinds += 1
    assert kinds >= 20


def test_stages_and_jobs_take_what_the_contract_names() -> None:
    stage = CreateStageInput(workflow_run_id="r", stage_id="s", stage_name="S", stage_number=1, execution_group=1)
    assert stage.status is UNSET
    assert job().stored_payload == {"_workflowId": "w"}
    full = job(payload={"x": 1}, group_key="g", definition_version="v")
    assert full.stored_payload == {"x": 1, "_workflowId": "w", "_groupKey": "g", "_definitionVersion": "v"}


@pytest.mark.parametrize(
    ("attempt", "expected_ms"), [(0, 1000), (1, 2000), (2, 4000), (11, 2_048_000), (12, 3_600_000), (10**6, 3_600_000)]
)
def test_the_backoff_doubles_up_to_its_cap(attempt: int, expected_ms: int) -> None:
    assert RetryBackoff().delay_ms(attempt) == expected_ms
