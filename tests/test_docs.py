"""Every Python snippet of the documentation runs as it stands there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workflow_adapters
from workflow_adapters.runtime.trouble import TROUBLE

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(?P<info>py[^\n`]*)\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)

# A snippet may await at its top level, and its tracebacks name the line of the document.
RUN = """
import ast, asyncio, inspect, sys
document, line, source = sys.argv[1:]
code = compile("\\n" * int(line) + source, document, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


def snippets() -> Iterator[object]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path.name.startswith("tutorial-"):
            continue  # its snippets are files that build on each other; tests/examples runs the page as a whole
        text = path.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start("source"))
            name = path.relative_to(ROOT).as_posix()
            yield pytest.param(name, line, match["info"].strip(), match["source"], id=f"{name}:{line + 1}")


@pytest.mark.parametrize(("document", "line", "info", "source"), list(snippets()))
def test_snippet_runs(document: str, line: int, info: str, source: str, tmp_path: Path) -> None:
    assert info == "python", "a snippet under another name would never be run"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, document, str(line), source],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_operations_tell_what_to_do_about_every_error() -> None:
    table = (ROOT / "docs/operations.md").read_text().partition("| error |")[2].partition("\n\n")[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+Error)`", row.split("|")[1])]
    raised = [name for name in workflow_adapters.__all__ if name.endswith("Error")]
    assert sorted(told) == sorted({*raised} - {"WorkflowAdapterError"})


def test_the_runtime_names_the_trouble_that_its_loops_survive() -> None:
    told = (ROOT / "docs/runtime.md").read_text().partition("Trouble\nis ")[2].partition(". Any other")[0]
    assert re.findall(r"`(\w+Error)`", told) == [error.__name__ for error in TROUBLE]
