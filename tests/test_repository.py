"""Rules for the files of the repository that no linter has."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("workflow_adapters", "conformance")
SHIPPED = (*PACKAGES, "examples")
OURS = (*SHIPPED, "benchmarks", "docs", "tests", "tools", ".ci")

MAX_FILE_LINES = 250
MAX_FUNCTION_LINES = 40

IGNORE = re.compile(r"#\s*(?:type:\s*ignore|pyright:|(?:ruff:\s*)?noqa)")
REASONED_IGNORE = re.compile(
    r"""\#\s*(?:type:\s*ignore\[[^]]+\] | pyright:\s*ignore\[[^]]+\] | noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)
        \s+(?:\#|-|–|—)\s*\S+\s+\S+""",  # noqa: RUF001 - any dash may stand before a reason
    re.VERBOSE,
)
MACHINE_SPECIFIC = re.compile(
    r"""(?<![\w.}"'])/(?:work|root|home)/\w
        | pypi\.org | pythonhosted | registry\.npmjs | deb\.debian\.org | \bindex-url\b""",
    re.VERBOSE,
)


def python_files(*directories: str) -> list[Path]:
    return sorted(path for name in directories for path in (ROOT / name).rglob("*.py"))


def text_files() -> Iterator[Path]:
    for directory in OURS:
        for path in sorted((ROOT / directory).rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and path != Path(__file__):
                yield path
    for path in sorted(ROOT.iterdir()):
        if path.is_file() and path.name != ".git":
            yield path


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function's name with how many lines of code it takes.

    Decorators, the docstring and statements of SQL are not counted: a statement stands whole in the function that runs
    it, and is one thing to read however long it is.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr) or _is_text(part)]
            inside = {line for text in texts for line in range(text.lineno + 1, (text.end_lineno or text.lineno) + 1)}
            docstring = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            inside |= {docstring.lineno} if docstring else set()
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - len(inside)


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def unreasoned_ignores(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and IGNORE.search(token.string) and not REASONED_IGNORE.search(token.string):
            yield token.start[0], token.string


def where(path: Path, line: int, what: str) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {what}"


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in python_files(*SHIPPED)}
    assert [where(path, lines, "too long") for path, lines in lengths.items() if lines > MAX_FILE_LINES] == []


def test_functions_are_short() -> None:
    assert [
        where(path, lines, name)
        for path in python_files(*SHIPPED)
        for name, lines in functions(path.read_text())
        if lines > MAX_FUNCTION_LINES
    ] == []


def test_every_ignore_says_why() -> None:
    assert [
        where(path, line, comment)
        for path in python_files(*SHIPPED, "benchmarks", "tests")
        for line, comment in unreasoned_ignores(path.read_text())
    ] == []


def test_nothing_names_a_machine_or_a_registry() -> None:
    assert [
        where(path, number, line.strip())
        for path in text_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if MACHINE_SPECIFIC.search(line)
    ] == []


def test_both_packages_are_marked_as_typed() -> None:
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES)


@pytest.mark.parametrize(
    ("comment", "complaints"),
    [
        ("# noqa: BLE001 - a handler may raise anything", 0),
        ("# noqa: BLE001, S110 - a handler may raise anything", 0),
        ("# type: ignore[arg-type]  # the stub knows no proxies", 0),
        ("# pyright: ignore[reportPrivateUsage] - the only way in", 0),
        ("# noqa", 1),
        ("# noqa: BLE001", 1),
        ("# noqa: BLE001 - ok", 1),
        ("# type: ignore", 1),
        ("# type: ignore  # the stub knows no proxies", 1),
        ("# ruff: noqa", 1),
        ("# pyright: basic", 1),
        ("# says why, not what", 0),
    ],
)
def test_the_rule_for_ignores_itself(comment: str, complaints: int) -> None:
    assert len(list(unreasoned_ignores(f"value = 1  {comment}\n"))) == complaints


def test_the_rule_for_functions_itself() -> None:
    source = 'def first():\n    """One.\n\n    Two.\n    """\n    return 1\n\nasync def second(): pass\n'
    assert dict(functions(source)) == {"first": 2, "second": 1}
