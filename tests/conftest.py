"""What every test of this project runs under."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A slow machine is no failure, and a failure elsewhere must be repeatable here from what was printed.
settings.register_profile("project", deadline=None, print_blob=True)
settings.load_profile("project")

# What is started in a shell's background, or by nohup, ignores these, and so would the programs that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # not SIG_DFL: nohup is to hold for these tests

# Those of the servers themselves end sessions in every state.
TESTS_OF_SERVERS = "tests/throwaway/"


@pytest.fixture(scope="session", autouse=True)
def no_connection_is_left_in_a_transaction() -> Iterator[None]:
    """Whoever drops a throwaway Postgres database, as every test does that made one, has left no transaction open."""
    from conformance.throwaway import ThrowawayError, ThrowawayServer
    from tests.postgres.left_behind import IN_TRANSACTION, gone

    drop = ThrowawayServer.drop_database

    def look_and_drop(self: ThrowawayServer, dsn: str) -> None:
        try:
            if not os.environ.get("PYTEST_CURRENT_TEST", "").startswith(TESTS_OF_SERVERS):
                self._databases._on(dsn, lambda connection: gone(connection, IN_TRANSACTION))
        except ThrowawayError:
            pass  # the database is gone already, or its server
        finally:
            drop(self, dsn)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThrowawayServer, "drop_database", look_and_drop)
        yield
