"""The options of `open_postgres`, checked before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, cast

from workflow_adapters.clock import Clock, SystemClock
from workflow_adapters.errors import ConfigurationError
from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff

MAX_IDENTIFIER_BYTES: Final = 63
_PLAIN_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNTS: Final = ("max_connections",)
_SPANS: Final = (
    "acquire_timeout",
    "connect_timeout",
    "statement_timeout",
    "idle_in_transaction_timeout",
    "close_timeout",
    "max_idle",
    "poll_interval",
    "migrate_timeout",
)
_SWITCHES: Final = ("pgbouncer", "wake_ups")
_KEPT_BY_THE_SERVER: Final = ("statement_timeout", "idle_in_transaction_timeout")
# Of less than a millisecond the server would make 0, which is no limit.
_SHORTEST: Final = timedelta(milliseconds=1)
_LONGEST: Final = timedelta(milliseconds=2**31 - 1)
# What our functions are quoted with.
_QUOTE_OF_OURS: Final = "$function$"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Defaults and meaning of the options. Anything that makes no sense is a ConfigurationError."""

    schema: str = "public"
    """The schema of the tables, any name. The search_path is never used."""

    status_enum: str = "Status"
    """The name of the enum type, a plain identifier, in the same schema."""

    clock: Clock = field(default_factory=SystemClock)
    """Stamps of the tables other than job_queue, which has the database's clock."""

    worker_id: str | None = None
    """What claims are stamped with; without it the host's, once adopted."""

    fairness: JobQueueFairness | None = None
    backoff: RetryBackoff = field(default_factory=RetryBackoff)

    pgbouncer: bool = False
    """PgBouncer in transaction mode is in between: no prepared statements, no startup parameter but the application
    name, no LISTEN, and time limits kept by the client."""

    wake_ups: bool = True
    """Whether to LISTEN for new jobs and NOTIFY others of them. Without, `wait_for_jobs` polls."""

    poll_interval: timedelta = timedelta(seconds=2)
    """How long `wait_for_jobs` relies on notifications before it looks for itself."""

    application_name: str = "workflow_adapters"
    max_connections: int = 10

    max_idle: timedelta = timedelta(minutes=5)
    """A pooled connection that was not used for so long is closed."""

    acquire_timeout: timedelta = timedelta(seconds=5)
    """How long a call waits for a free connection before it is a BackendBusyError."""

    connect_timeout: timedelta = timedelta(seconds=10)
    """How long opening a connection may take before it is a BackendUnavailableError."""

    statement_timeout: timedelta = timedelta(seconds=30)
    """How long one statement may take, waits for locks included, before it is a BackendBusyError. The server keeps it;
    where no answer comes, the client gives up some 5 s later: a write outside of a transaction, or a COMMIT, is an
    OutcomeUnknownError then. With `pgbouncer`, and on a pool that was handed in, the client alone keeps it."""

    idle_in_transaction_timeout: timedelta = timedelta(minutes=1)
    """How long a transaction may wait for its next statement before the server ends it, which the next call in it is
    told by a BackendUnavailableError. Nothing keeps it with `pgbouncer`, or on a pool that was handed in."""

    close_timeout: timedelta = timedelta(seconds=10)
    """How long leaving the bundle waits for calls still running."""

    migrate_timeout: timedelta = timedelta(minutes=5)
    """How long `migrate()` waits for another process that is migrating, how long it tries again to get the lock of a
    table, and how long each of its statements may take, such as the building of an index: each of these anew, and each
    is a BackendBusyError."""

    connect: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Further arguments of `asyncpg.connect`: TLS, hosts, a password that is a function, and so on."""

    def __post_init__(self) -> None:
        _check_identifier("schema", self.schema)
        _check_identifier("status_enum", self.status_enum)
        if not _PLAIN_IDENTIFIER.fullmatch(self.status_enum):
            raise ConfigurationError(f"status_enum: {self.status_enum!r} is not a plain identifier such as Status")
        for name in _COUNTS:
            count: object = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ConfigurationError(f"{name}: {count!r} must be a number of at least 1")
        for name in _SPANS:
            value: object = getattr(self, name)
            longest = _LONGEST if name in _KEPT_BY_THE_SERVER else timedelta.max
            if not isinstance(value, timedelta) or not _SHORTEST <= value <= longest:
                raise ConfigurationError(f"{name}: {value!r} must be a timedelta from {_SHORTEST} to {longest}")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name}: {getattr(self, name)!r} must be True or False")
        _check_setting("application_name", self.application_name)
        _check_connect(self.connect)

    @property
    def listens(self) -> bool:
        """LISTEN is state of a session, which PgBouncer in transaction mode does not keep."""
        return self.wake_ups and not self.pgbouncer


def _check_setting(field: str, value: object) -> None:
    if not isinstance(value, str) or not (value.isprintable() or not value):
        raise ConfigurationError(f"{field}: must be a str of printable characters, not {value!r}")


def _check_connect(connect: object) -> None:
    """No value of it is shown: one may be a password."""
    if not isinstance(connect, Mapping):
        raise ConfigurationError(f"connect: must be a mapping of arguments of asyncpg.connect, not {type(connect)}")
    settings = cast("Mapping[str, object]", connect).get("server_settings")
    if settings is None:
        return
    if not isinstance(settings, Mapping):
        raise ConfigurationError(f"connect: server_settings must be a mapping of str to str, not {type(settings)}")
    for name, value in cast("Mapping[object, object]", settings).items():
        if not isinstance(name, str) or not isinstance(value, str) or "\0" in name + value:
            raise ConfigurationError(f"connect: server_settings must be a mapping of str to str, unlike {name!r}")


def _check_identifier(field: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{field}: must be a name, not {value!r}")
    if "\0" in value or not value.isprintable():
        raise ConfigurationError(f"{field}: {value!r} has characters that no identifier of ours may have")
    if value.startswith("pg_") or _QUOTE_OF_OURS in value:
        raise ConfigurationError(f"{field}: {value!r} begins with pg_, or has {_QUOTE_OF_OURS} in it")
    if len(value.encode()) > MAX_IDENTIFIER_BYTES:
        raise ConfigurationError(f"{field}: {value!r} is longer than the {MAX_IDENTIFIER_BYTES} bytes of an identifier")


def quoted(identifier: str) -> str:
    """An identifier as SQL takes it, whatever characters it has."""
    return '"' + identifier.replace('"', '""') + '"'
