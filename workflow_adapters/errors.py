"""The one tree of errors that adapters raise; a driver's own exception is always the ``__cause__``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Entity: TypeAlias = Literal[
    "run", "definition", "stage", "step", "log", "annotation", "artifact", "job", "outbox event", "idempotency key"
]
"""What an error is about, in the words that every adapter uses."""


class WorkflowAdapterError(Exception):
    """Base of every error of this library.

    All of them except `BackendError` leave the surrounding transaction usable. A SchemaError or ConfigurationError that
    is Postgres' answer to a statement in a transaction is a BackendError, too: where one is caught, the end of the
    block raises it again and nothing is stored. An inner block keeps the outer one usable after any error.
    """


class NotFoundError(WorkflowAdapterError):
    """A row that the call needs does not exist: the row itself or the parent it names."""

    def __init__(self, entity: Entity, id: str) -> None:
        super().__init__(f"{entity} {id!r} does not exist")
        self.entity: Entity = entity
        self.id = id

    def __reduce__(self) -> tuple[type[NotFoundError], tuple[Entity, str]]:
        return type(self), (self.entity, self.id)


class AlreadyExistsError(WorkflowAdapterError):
    """An id or a unique pair is taken. `id` is the id, or the pair as ``"run/stage"``."""

    def __init__(self, entity: Entity, id: str) -> None:
        super().__init__(f"{entity} {id!r} exists already")
        self.entity: Entity = entity
        self.id = id

    def __reduce__(self) -> tuple[type[AlreadyExistsError], tuple[Entity, str]]:
        return type(self), (self.entity, self.id)


class StaleVersionError(WorkflowAdapterError):
    """The stored version is not the expected one; nothing was written. Read the row again and decide anew."""

    def __init__(self, entity: Entity, id: str, expected: int, actual: int) -> None:
        super().__init__(f"{entity} {id!r} is at version {actual}, not {expected}")
        self.entity: Entity = entity
        self.id = id
        self.expected = expected
        self.actual = actual

    def __reduce__(self) -> tuple[type[StaleVersionError], tuple[Entity, str, int, int]]:
        return type(self), (self.entity, self.id, self.expected, self.actual)


class InvalidValueError(WorkflowAdapterError, ValueError):
    """A value that no adapter stores. `field` names the argument, `path` the place inside it.

    Raised when an input object is built or before the first statement: nothing was written.
    """

    def __init__(self, field: str, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.field = field
        self.path = path
        self.why = why

    def __reduce__(self) -> tuple[type[InvalidValueError], tuple[str, str, str]]:
        return type(self), (self.field, self.path, self.why)


class SchemaError(WorkflowAdapterError):
    """The database lacks what the adapters need, or is newer than this code.

    `missing` lists what, `mend` says what to do.
    """

    def __init__(self, missing: Sequence[str], mend: str) -> None:
        super().__init__(f"the schema does not fit: {', '.join(missing)}; {mend}")
        self.missing = tuple(missing)
        self.mend = mend

    def __reduce__(self) -> tuple[type[SchemaError], tuple[tuple[str, ...], str]]:
        return type(self), (self.missing, self.mend)


class ConfigurationError(WorkflowAdapterError):
    """An option, URL or connection cannot be used as it was given."""


class UsageError(WorkflowAdapterError, RuntimeError):
    """A call at a time or place where it can not work.

    For instance: a ``tx`` after its end, an outer ``tx`` inside its own nested block, another event loop,
    a closed bundle, ``bind()`` without an open transaction.
    """


class BackendError(WorkflowAdapterError):
    """The database failed. `retryable` says whether the same call may simply be made again."""

    retryable: bool = False


class BackendUnavailableError(BackendError):
    """The database cannot be reached or is read-only; nothing was written."""

    retryable = True


class BackendBusyError(BackendError):
    """A wait for a lock or a pooled connection reached its deadline; nothing was written."""

    retryable = True


class TransactionConflictError(BackendError):
    """A deadlock or serialization failure: the transaction is gone, run it again from its start."""

    retryable = True


class OutcomeUnknownError(BackendError):
    """The connection was lost while a write or a COMMIT was in flight: it may or may not have happened.

    Calls that carry an identity may be repeated: create_run with an id, enqueue_parallel, a fenced acknowledgement,
    log_batch_results, annotations with an idempotency key. append_outbox_events and acquire_idempotency_key may not.
    """
