"""Rows of ai_calls and their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AICallRecord:
    """One logged call. A figure that was not given is None, never a guess."""

    id: str
    created_at: datetime
    topic: str
    call_type: str
    model_key: str
    model_id: str
    prompt: str
    response: str
    input_tokens: int
    output_tokens: int
    cost: float
    estimated_cost: float | None
    reported_cost: float | None
    cost_source: str | None
    served_by: str | None
    cached_input_tokens: int | None
    reasoning_tokens: int | None
    batch_id: str | None
    request_id: str | None
    metadata: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStats:
    """Sums over the calls of one model."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AIHelperStats:
    """Sums over the calls of a topic prefix; costs are decimal sums, so 0.1 + 0.2 reads 0.3."""

    total_calls: int
    total_input_tokens: int
    total_output_tokens: int
    total_cost: float
    per_model: Mapping[str, ModelStats]
