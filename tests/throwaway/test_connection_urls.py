"""Connection URLs: another database, and no password in any text."""

import pytest

from conformance.throwaway.dsn import build, check_given, database_of, with_database, without_password
from conformance.throwaway.errors import UnavailableError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgresql://u:p@h:5432/a", "postgresql://u:p@h:5432/b"),
        ("postgres://u:p%2Fq@h/a?sslmode=require", "postgres://u:p%2Fq@h/b?sslmode=require"),
        ("postgresql://h", "postgresql://h/b"),
        ("postgresql:///a?host=/run/pg&dbname=c", "postgresql:///b?host=%2Frun%2Fpg"),
        ("postgresql://u@h1:1,h2:2/a", "postgresql://u@h1:1,h2:2/b"),
        ("postgresql://u@[::1]:5432/a", "postgresql://u@[::1]:5432/b"),
    ],
)
def test_another_database_on_the_same_server(given: str, expected: str) -> None:
    assert with_database(given, "b") == expected
    assert database_of(expected) == "b"


def test_the_database_in_the_options_is_the_one_that_counts() -> None:
    assert database_of("postgresql://h/a?dbname=c") == "c"


def test_a_password_with_every_special_character_survives() -> None:
    dsn = build("127.0.0.1", 1, "a/b@c:d?e#f")
    assert database_of(dsn) == "postgres"
    assert without_password("a/b@c:d?e#f", dsn) == "***"


@pytest.mark.parametrize(
    "dsn",
    [
        "host=h password=hunter2 dbname=x",
        "mysql://u:hunter2@h/x",
        "postgresql://u:hun/ter2@h/x",
        "postgresql://u:hun#ter2@h/x",
        "postgresql://u:hunter2@[h/x",
        "",
    ],
)
def test_a_malformed_url_is_refused_without_being_quoted(dsn: str) -> None:
    with pytest.raises(UnavailableError, match=r"THE_VARIABLE") as caught:
        check_given(dsn, "THE_VARIABLE")
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_the_password_is_blotted_out_as_written_and_as_meant() -> None:
    dsn = "postgresql://u:p%40ss@h/x?password=other"
    assert without_password("p%40ss p@ss other", dsn) == "*** *** ***"
