"""Groups of calls that share one transaction, in the writer's thread.

Syncing the file costs more than most operations, so those of concurrent tasks are committed together. Each keeps its
own outcome: one that fails is undone alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workflow_adapters.errors import BackendBusyError, OutcomeUnknownError, WorkflowAdapterError
from workflow_adapters.sqlite.calls import Call
from workflow_adapters.sqlite.connection import SqliteConnection
from workflow_adapters.sqlite.execution import begin, commit, perform_alone, perform_within, roll_back
from workflow_adapters.sqlite.patience import IMPATIENT, Patience


def run_group(connection: SqliteConnection, calls: Sequence[Call], patience: Patience) -> None:
    """Run the calls and fill in their outcomes. One call alone needs no transaction around its single statement."""
    connection.file.require()
    if len(calls) == 1 or not _run_together(connection, calls, patience):
        for call in calls:
            call.run(partial(perform_alone, connection, call.operation, patience, single=call.single))


def _run_together(connection: SqliteConnection, calls: Sequence[Call], patience: Patience) -> bool:
    """False when nothing was stored and the calls are to be run one by one, so that only the culprit fails."""
    try:
        begin(connection, patience)
        for call in calls:
            call.run(partial(perform_within, connection, call.operation, IMPATIENT, single=call.single))
            if not connection.in_transaction:
                # A full disk or an I/O error: SQLite has undone the whole transaction.
                return False
        commit(connection, patience)
    except (BackendBusyError, OutcomeUnknownError) as error:
        for call in calls:
            if call.error is None:
                call.error = type(error)(*error.args)
                call.error.__cause__ = error.__cause__
                call.starved = isinstance(error, BackendBusyError)
    except WorkflowAdapterError:
        roll_back(connection)
        return False
    return True
