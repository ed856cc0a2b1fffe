"""How messages are worded."""

from workflow_adapters.wording import counted


def test_one_and_many() -> None:
    assert [counted(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
