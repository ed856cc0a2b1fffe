"""A DSN that can not be used is refused on opening; the message names what of it is wrong and shows none of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from workflow_adapters import ConfigurationError, open_adapters
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.connect import Connector
from workflow_adapters.postgres.dsn import check_dsn
from workflow_adapters.postgres.options import PostgresSettings

LOCAL = "127.0.0.1:1"
WRONG = [
    ("mysql://u:xyzzy@host/db", "scheme"),
    ("host/xyzzy", "scheme"),
    ("postgresql:/u:xyzzy@host", "scheme"),
    ("postgresql://u:xy@zzy@host/db", "user, password or database"),
    ("postgresql://u:xy/zzy@host/db", "user, password or database"),
    ("postgresql://u:xy#zzy@host/db", "user, password or database"),
    ("postgresql://u:xy[zzy@host/db", "user, password or database"),
    ("postgresql://u:[xyzzy]@host/db", "user, password or database"),
    ("postgresql://u:xyzzy@host/d@b", "user, password or database"),
    ("postgresql://u:xy\nzzy@host/db", "user or password"),
    ("postgresql://u:xy%zz@host/db", "user or password"),
    ("postgresql://u:xyzzy%00@host/db", "user or password"),
    ("postgresql://u:xyzzy%ff@host/db", "user or password"),
    ("postgresql://u:xyzzy\ud800@host/db", "user or password"),
    ("postgresql://u:xyzzy\uff0f@host/db", "user or password, or host"),
    ("postgresql://u:xyzzy@[bad/db", "host"),
    ("postgresql://u:xyzzy@[bad]/db", "host"),
    ("postgresql://u:xyzzy@bad]/db", "host"),
    ("postgresql://u:xyzzy@[127.0.0.1]/db", "host"),
    ("postgresql://u:xyzzy@[::1]x/db", "host"),
    ("postgresql://u:xyzzy@h1,,h2/db", "host"),
    ("postgresql://u:xyzzy@:5432/db", "host"),
    ("postgresql://u:xyzzy@my host/db", "host"),
    ("postgresql://u:xyzzy@host\t/db", "host"),
    ("postgresql://u:xyzzy@h%00/db", "host"),
    ("postgresql://u:xyzzy@host:xyzzy/db", "port"),
    ("postgresql://u:xyzzy@host:-1/db", "port"),
    ("postgresql://u:xyzzy@host:0/db", "port"),
    ("postgresql://u:xyzzy@host:65536/db", "port"),
    ("postgresql://u:xyzzy@host:\u0663/db", "port"),
    ("postgresql://u:xyzzy@host:1:2/db", "port"),
    ("postgresql://u:xyzzy@[::1]:x/db", "port"),
    ("postgresql://u:xyzzy@::1/db", "host"),
    ("postgresql://u:xy?zzy@host/db", "port"),
    ("postgresql://u:12?xyzzy@host/db", "query"),
    ("postgresql://u:xyzzy@host/db\n", "database"),
    ("postgresql://u:xyzzy@host/d%00b", "database"),
    ("postgresql://u:xyzzy@host/db?xyzzy", "query"),
    ("postgresql://u:xyzzy@host/db?a=%zz", "query"),
    ("postgresql://u:xyzzy@host/db?application_name=a%00", "query"),
    ("postgresql:///db?host=a,,b", "query"),
    ("postgresql:///db?host=a&port=65536", "port"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("opening", [open_postgres, open_adapters])
@pytest.mark.parametrize(("dsn", "field"), WRONG)
async def test_a_dsn_that_can_not_be_used(
    opening: Callable[[str], AbstractAsyncContextManager[object]], dsn: str, field: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        async with opening(dsn):
            pass
    if field != "scheme":
        assert f" {field}: " in str(caught.value)
    assert "xy" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://",
        "POSTGRESQL://host",
        "postgres://host",
        "postgresql://user:p%40ss@host:1/db?sslmode=disable",
        "postgresql://user:p:s s@host:/a b?",
        "postgresql://u@h1:1,h2:2/db?target_session_attrs=any",
        "postgresql:///db?host=/run/sock",
        "postgresql://%2Frun%2Fsock/db",
        "postgresql:///db?host=a,b&port=1,65535&user=a@b&password=p@ss",
        "postgresql://[::1]:5432/db",
        "postgresql://[fe80::1%25eth0]/db",
        "postgresql://ü:ß@höst/dänk",
    ],
)
def test_a_good_dsn(dsn: str) -> None:
    check_dsn(dsn)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:secret@h/d?target_session_attrs=secret",
        "postgresql://u:secret@h/d?sslmode=odd",
        f"postgresql://u:secret@{'h' * 70}/d",
        f"postgresql://u:secret@{LOCAL},{LOCAL}/d?ssl_min_protocol_version=odd",
    ],
)
async def test_what_asyncpg_can_not_use_is_told_without_the_password(dsn: str) -> None:
    connector = Connector(dsn, PostgresSettings())
    with pytest.raises(ConfigurationError, match="asyncpg can not use") as caught:
        await connector()
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.asyncio
@pytest.mark.parametrize(("name", "value"), [("PGPORT", "65536"), ("PGHOST", "a,,b"), ("PGPORT", "x")])
async def test_what_the_environment_says_and_asyncpg_can_not_use(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match="asyncpg can not use"):
        await Connector("postgresql:///db", PostgresSettings())()
