"""A Redis for the tests of the custom adapter."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.examples.redis_server import is_installed, running_redis


@pytest.fixture(scope="session")
def redis_url() -> Generator[str]:
    """A throwaway server of this session, which REDIS_URL names too."""
    if not is_installed():
        pytest.skip("redis-server is not installed (Debian: apt-get install redis-server)")
    with running_redis() as url, pytest.MonkeyPatch.context() as environment:
        environment.setenv("REDIS_URL", url)
        yield url
