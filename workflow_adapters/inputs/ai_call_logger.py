"""Inputs for ai_calls."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_adapters.json_values import JsonObject, json_object
from workflow_adapters.validation import finite, key, non_negative, normalise, optional, text


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAICallInput:
    """One call of a model. Costs are in the host's currency; a figure that was not given stays None."""

    topic: str
    call_type: str
    model_key: str
    model_id: str
    prompt: str
    response: str
    input_tokens: int
    output_tokens: int
    cost: float
    estimated_cost: float | None = None
    reported_cost: float | None = None
    cost_source: str | None = None
    served_by: str | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    batch_id: str | None = None
    request_id: str | None = None
    metadata: JsonObject | None = None

    def __post_init__(self) -> None:
        normalise(
            self,
            topic=key,
            call_type=key,
            model_key=key,
            model_id=key,
            prompt=text,
            response=text,
            input_tokens=non_negative,
            output_tokens=non_negative,
            cost=finite,
            estimated_cost=optional(finite),
            reported_cost=optional(finite),
            cost_source=optional(key),
            served_by=optional(key),
            cached_input_tokens=optional(non_negative),
            reasoning_tokens=optional(non_negative),
            batch_id=optional(key),
            request_id=optional(key),
            metadata=optional(json_object),
        )
