"""The tutorial from top to bottom: files are written and changed, commands run, and what they print compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from redis import Redis

ROOT: Final = Path(__file__).parents[2]
TUTORIAL: Final = ROOT / "docs/tutorial-custom-adapter.md"
BLOCK: Final = re.compile(
    r"^(?:`(?P<path>[\w./]+)`:\n\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
DOCUMENTED_URL: Final = "redis://localhost:6379/0"
LEFT_OUT: Final = "…"
END: Final = "-- end of the output of a command, which ended with"
# How many clauses there are, and how long they take, is not what the page is about.
COUNTED: Final = re.compile(r"(passed|failed|skipped|waived|not met|not applicable)\b")


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    output: list[str] = field(default_factory=list)


def commands(body: str) -> list[Command]:
    """Lines after a ``$``, each with what is shown below it."""
    found: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            found[-1].output.append(line)
    return found


def run(given: list[Command], place: Path, environment: dict[str, str]) -> list[tuple[int, str]]:
    """Status and output of each command, in one shell."""
    script = "".join(f'{command.line}\n__s=$?; echo; echo "{END} $__s"; (exit $__s)\n' for command in given)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    *parts, rest = re.split(rf"\n{re.escape(END)} (\d+)\n", done.stdout)
    assert rest == "", done.stdout
    return [(int(status), output) for output, status in zip(parts[::2], parts[1::2], strict=True)]


def pattern(expected: list[str]) -> str:
    """What matches the output: line by line, apart from what is left out, and figures."""
    lines = [r"(?:.*\n)*?" if line == LEFT_OUT else re.escape(comparable(line)) + r"\n" for line in expected]
    return "".join(lines)


def comparable(line: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", line.rstrip()) if COUNTED.search(line) else line.rstrip()


def check(command: Command, follower: str | None, status: int, output: str) -> None:
    if follower != "echo $?":
        assert status == 0, f"{command.line}\n{output}"
    assert "does not provide the extra" not in output
    if any(command.output):
        shown = "".join(f"{comparable(line)}\n" for line in output.strip("\n").splitlines())
        expected = "\n".join(command.output).strip("\n").splitlines()
        assert re.fullmatch(pattern(expected), shown), f"{command.line}\n{output}"


def changed(text: str, diff: str) -> str:
    before = "".join(f"{line[1:]}\n" for line in diff.splitlines() if not line.startswith("+"))
    after = "".join(f"{line[1:]}\n" for line in diff.splitlines() if not line.startswith("-"))
    assert text.count(before) == 1, before
    return text.replace(before, after)


def blocks(text: str) -> Iterator[tuple[str, str | None, str]]:
    for match in BLOCK.finditer(text):
        yield match["kind"], match["path"], match["body"]


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """That of somebody who has just installed the packages; nothing is fetched for the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REDIS_URL"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
    return {**inherited, "PATH": path, "PYTHONPATH": str(ROOT), "PIP_NO_INDEX": "1"}


def carry_out(given: list[Command], place: Path, environment: dict[str, str]) -> None:
    """Run the commands of a block and compare; what they export stays for the next block."""
    followers = [*(command.line for command in given[1:]), None]
    for command, follower, (status, output) in zip(given, followers, run(given, place, environment), strict=True):
        check(command, follower, status, output)
        if command.line.startswith("export "):
            name, _, value = shlex.split(command.line)[1].partition("=")
            environment[name] = value


def test_the_page_is_what_happens(tmp_path: Path, environment: dict[str, str], redis_url: str) -> None:
    done: list[str] = []
    shown: set[str] = set()
    for kind, path, body in blocks(TUTORIAL.read_text().replace(DOCUMENTED_URL, redis_url)):
        file = tmp_path / (path or "")
        if kind == "console":
            carry_out(commands(body), tmp_path, environment)
            shown |= {command.line for command in commands(body)}
        elif kind == "diff":
            file.write_text(changed(file.read_text(), body))
            shown.clear()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)
        if kind == "yaml":
            lines = [line for line in re.findall(r"- run: (.*)", body) if line not in shown]
            carry_out([Command(line) for line in lines], tmp_path, environment)
        done.append(kind)
    assert set(done) == {"console", "python", "diff", "yaml"}
    assert (tmp_path / "conformance.html").stat().st_size > 0
    with Redis.from_url(redis_url) as left:
        assert left.keys("conformance_*") == []


@pytest.mark.parametrize(
    ("expected", "shown", "matches"),
    [
        (["a", "…", "d"], "a\nb\nc\nd\n", True),
        (["a", "…", "d"], "a\nd\n", True),
        (["a", "d"], "a\nb\nd\n", False),
        (["…", "3 passed in 1.5 s"], "x\nN passed in N s\n", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_the_comparison_itself(expected: list[str], shown: str, matches: bool) -> None:
    assert (re.fullmatch(pattern(expected), shown) is not None) is matches
