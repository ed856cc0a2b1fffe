"""Tests marked `anyio` run in both event loops; those marked `asyncio` are about what asyncio alone has."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
