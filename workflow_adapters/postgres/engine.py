"""What the databases of one bundle share: the settings, what the schema has, and how a statement is run."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from workflow_adapters.errors import SchemaError, WorkflowAdapterError
from workflow_adapters.lifecycle import Lifecycle
from workflow_adapters.postgres.connection import Connection, is_lost
from workflow_adapters.postgres.detect import PostgresFacts, facts_of, read_catalogue
from workflow_adapters.postgres.errors import InFlight, translated, was_never_sent
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.postgres.plans import PlanWatch
from workflow_adapters.postgres.style import PostgresStyle
from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation, Statement

T = TypeVar("T")

CURRENT: Final = PostgresFacts()


class Engine:
    """Runs operations on whatever connection it is given."""

    def __init__(self, settings: PostgresSettings, lifecycle: Lifecycle, dialect: Dialect) -> None:
        self.settings = settings
        self.lifecycle = lifecycle
        self.dialect = dialect
        self.plans = PlanWatch()
        self.facts: PostgresFacts | None = None
        self._doubted: PostgresFacts | None = None
        self.style = self._style(CURRENT)

    def check(self) -> None:
        """UsageError after close, and in another event loop than the one of open."""
        self.lifecycle.check()

    async def know_schema(self, connection: Connection, limit: float | None) -> PostgresFacts:
        """Look at the schema, the first time. SchemaError where it can not be worked with; it may be later."""
        if self.facts is None:
            settings = self.settings
            try:
                catalogue = await read_catalogue(connection, settings.schema, settings.status_enum, limit)
            except Exception as error:
                raise _failed(error, connection, InFlight(sent=False)) from error
            try:
                facts = facts_of(catalogue)
            except SchemaError:
                # What is there goes on working. Another call may have looked at the same time.
                seen = self.facts or self._doubted
                if seen is None:
                    raise
                facts = seen
            self.style, self.facts, self._doubted = self._style(facts), facts, None
        return self.facts

    def forget_schema(self) -> None:
        """Look again before the next statement: a migration ran."""
        self.facts = self._doubted = None

    def doubt_schema(self) -> None:
        """The same where something is missing: another schema may have taken the place of the one we saw."""
        if self.facts is not None:
            self.facts, self._doubted = None, self.facts

    async def run(
        self, connection: Connection, operation: Operation[T], *, limit: float | None, in_doubt: bool = False
    ) -> T:
        """Drive an operation to its answer. `in_doubt`: its statements take effect one by one, without a COMMIT."""
        answered = False
        try:
            statement = next(operation)
            while True:
                try:
                    rows = await self._fetch(connection, statement, limit)
                except Exception as error:
                    sent = answered or not was_never_sent(error)
                    failed = _failed(error, connection, InFlight(sent=sent, in_doubt=in_doubt))
                    if isinstance(failed, SchemaError):
                        self.doubt_schema()
                    raise failed from error
                answered = True
                statement = operation.send(rows)
        except StopIteration as end:
            return end.value

    async def execute(self, connection: Connection, sql: str, limit: float | None) -> str:
        """Run a statement of transaction control; what the connection does until COMMIT is never in doubt."""
        try:
            return await connection.execute(sql, timeout=limit)
        except Exception as error:
            raise _failed(error, connection, InFlight()) from error

    async def _fetch(self, connection: Connection, statement: Statement, limit: float | None) -> list[Any]:
        rendered = self.style.render(statement.text)
        args = self.style.bind(rendered, statement.args)
        begun = self.plans.begin(statement.text)
        if begun is None:
            return await connection.fetch(rendered.text, *args, timeout=limit)
        rows = await connection.fetch(rendered.text + self.plans.mark(statement.text), *args, timeout=limit)
        self.plans.end(statement.text, begun)
        return rows

    def _style(self, facts: PostgresFacts) -> PostgresStyle:
        # The style puts names between quotes itself.
        schema = self.settings.schema.replace('"', '""')
        return PostgresStyle(schema, self.settings.status_enum, facts.absent)


def _failed(error: Exception, connection: Connection, in_flight: InFlight) -> WorkflowAdapterError:
    return translated(error, is_lost(connection), in_flight)
