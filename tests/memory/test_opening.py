"""What a URL may say, and what its refusal may show."""

from typing import Any

import pytest

from workflow_adapters import ConfigurationError, open_adapters
from workflow_adapters.opening import _sqlite_path


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:secret@host/db",
        "user:secret@host/db",
        "secret",
        "memory://secret",
        "sqlite://secret",
        "sqlite:///secret?mode=ro",
        "sqlite:///",
        "sqlite:///:memory:",
        b"postgresql://user:secret@host/db",
        None,
    ],
)
def test_a_url_that_is_not_understood_is_refused_and_not_shown(url: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_adapters(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("rest", "path"),
    [("", None), ("/relative.db", "relative.db"), ("//absolute.db", "/absolute.db"), ("/a b%20c.db", "a b%20c.db")],
)
def test_a_sqlite_path_is_taken_as_it_is_written(rest: str, path: str | None) -> None:
    assert _sqlite_path(rest) == path
