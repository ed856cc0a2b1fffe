"""What a background loop survives."""

from __future__ import annotations

from workflow_adapters.errors import BackendError, ConfigurationError, SchemaError

TROUBLE = (BackendError, ConfigurationError, SchemaError, TimeoutError)
"""The database's trouble: it passes without a change of the program, so a loop logs it, waits and tries again.

A database that refuses a role, a password or a name while somebody works on it is a ConfigurationError, one in the
middle of a migration a SchemaError. UsageError and InvalidValueError are faults of the program, and end the loop.
"""
