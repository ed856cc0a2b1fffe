"""Inputs for workflow_definitions."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.validation import key, normalise


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDefinitionInput:
    """A definition version to register."""

    workflow_id: str
    version: str
    snapshot: JsonValue
    structure_hash: str

    def __post_init__(self) -> None:
        normalise(self, workflow_id=key, version=key, snapshot=json_value, structure_hash=key)
