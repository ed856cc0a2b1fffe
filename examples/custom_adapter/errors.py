"""What goes wrong with Redis, in the contract's errors. The driver's exception is always the cause."""

from __future__ import annotations

from typing import Final

import redis.exceptions as driver

from workflow_adapters import (
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    OutcomeUnknownError,
    WorkflowAdapterError,
)

_REFUSES_US: Final = (driver.AuthenticationError, driver.AuthorizationError, driver.NoPermissionError, driver.AskError)
_REFUSES_WRITES: Final = (
    driver.BusyLoadingError,
    driver.ReadOnlyError,
    driver.OutOfMemoryError,
    driver.ClusterDownError,
)
# redis-py has no class for these.
_REFUSES_WRITES_BY_CODE: Final = ("MISCONF", "NOREPLICAS")
_BUSY_BY_CODE: Final = ("BUSY",)


def not_connected(error: Exception) -> WorkflowAdapterError:
    """No connection could be had: nothing was sent."""
    # redis-py calls all of it a ConnectionError, and only the cause tells.
    reason = error.__cause__ or error
    if isinstance(reason, TimeoutError):
        return BackendBusyError("all connections to Redis are in use; wait longer or raise max_connections")
    return _answered(reason) or BackendUnavailableError(f"Redis cannot be reached: {error}")


def call_failed(error: Exception, *, writes: bool) -> WorkflowAdapterError:
    """The script was sent; either Redis has answered with an error, or nothing is known of it."""
    known = _answered(error)
    if known is not None:
        return known
    if isinstance(error, driver.ResponseError):
        return BackendError(f"Redis has refused a script: {error}")
    if writes:
        return OutcomeUnknownError(f"the connection to Redis was lost during a write, which may have happened: {error}")
    return BackendUnavailableError(f"the connection to Redis was lost: {error}")


def _answered(error: BaseException) -> WorkflowAdapterError | None:
    """What an error means that Redis itself has sent before it ran anything."""
    code = str(error).partition(" ")[0]
    if isinstance(error, _REFUSES_US):
        return ConfigurationError(f"Redis refuses this client: {error}")
    if isinstance(error, _REFUSES_WRITES) or code in _REFUSES_WRITES_BY_CODE:
        return BackendUnavailableError(f"Redis takes no writes now: {error}")
    if code in _BUSY_BY_CODE:
        return BackendBusyError(f"Redis is busy: {error}")
    return None
