"""Which rung is asked for, with which settings."""

import pytest

from conformance.throwaway.ladder import VARIABLE, Wanted, rungs
from conformance.throwaway.settings import as_configuration, complete


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        ("", (None, None)),
        ("embedded", ("embedded", None)),
        ("embedded-18", ("embedded", 18)),
        ("testcontainers-15", ("testcontainers", 15)),
        ("dsn", ("dsn", None)),
        ("18", (None, 18)),
    ],
)
def test_a_rung_a_version_or_both(preferred: str, expected: tuple[str | None, int | None]) -> None:
    assert Wanted.parse(preferred) == expected


@pytest.mark.parametrize("preferred", ["embeded", "embedded18", "-18", "embedded-", "16.4", "local-x"])
def test_anything_else_is_named_with_the_choices(preferred: str) -> None:
    with pytest.raises(ValueError, match=rf"^preferred: '{preferred}' is neither a rung \(dsn, testcontainers"):
        Wanted.parse(preferred)


def test_the_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "local-15")
    assert Wanted.parse(None) == ("local", 15)
    assert Wanted.parse("embedded") == ("embedded", None)
    monkeypatch.setenv(VARIABLE, "nonsense")
    with pytest.raises(ValueError, match=rf"^{VARIABLE}: 'nonsense'"):
        Wanted.parse(None)


def test_the_order_of_the_ladder() -> None:
    names = [rung.name for rung in rungs(Wanted(None, None))]
    assert names == ["dsn", "testcontainers-16", "local", "embedded-16"]
    names = [rung.name for rung in rungs(Wanted(None, 18))]
    assert names == ["dsn", "testcontainers-18", "local-18", "embedded-18"]


def test_settings_are_laid_over_the_defaults() -> None:
    settings = complete({"fsync": "on", "shared_buffers": "1GB"})
    assert settings["fsync"] == "on"
    assert settings["synchronous_commit"] == "on"
    assert "shared_buffers = '1GB'\n" in as_configuration(settings)


def test_values_are_quoted_as_the_configuration_file_wants_it() -> None:
    assert as_configuration({"search_path": "it's, a\\b"}) == "search_path = 'it''s, a\\\\b'\n"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"synchronous_commit": "off"}, "synchronous_commit must stay on"),
        ({"port": "5432"}, "port is chosen by the harness"),
        ({"fsync = on\nport": "1"}, "no name of a server setting"),
        ({"work_mem": "1MB\nport = 1"}, "work_mem has a line break"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=rf"^settings: .*{complaint}"):
        complete(settings)
