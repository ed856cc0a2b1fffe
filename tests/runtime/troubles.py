"""The troubles of a database that every loop survives, one of each kind."""

from __future__ import annotations

from workflow_adapters import BackendUnavailableError, ConfigurationError, OutcomeUnknownError, SchemaError

AWAY = BackendUnavailableError("away")
TROUBLES = [
    AWAY,
    OutcomeUnknownError("cut"),
    ConfigurationError("the role may not log in"),
    SchemaError(["table outbox_events"], "migrate"),
    TimeoutError(),
]
