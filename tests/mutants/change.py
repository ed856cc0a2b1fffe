"""From a mutant to the source of its modules."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.mutants.catalogue import ROOT, Hunk, Mutant

MOST_CHANGED_LINES: Final = 10


def changed_sources(mutant: Mutant) -> Mapping[str, str]:
    """The files that the mutant changes, with what stands in them then. ValueError where it does not fit."""
    sources: dict[str, str] = {}
    for hunk in mutant.hunks:
        source = sources.get(hunk.file) or (ROOT / hunk.file).read_text(encoding="utf-8")
        sources[hunk.file] = _changed(hunk, source)
    return sources


def diff_of(mutant: Mutant) -> list[str]:
    """The changed lines as a unified diff has them, without context and without indentation in common."""
    lines: list[str] = []
    for file, source in changed_sources(mutant).items():
        before = (ROOT / file).read_text(encoding="utf-8").splitlines()
        told = difflib.unified_diff(before, source.splitlines(), lineterm="", n=0)
        lines += [line for line in told if line[0] in "+-" and not line.startswith(("---", "+++"))]
    indent = min((len(line[1:]) - len(line[1:].lstrip()) for line in lines if line[1:].strip()), default=0)
    return [f"{line[0]} {line[1 + indent :]}".rstrip() for line in lines]


def module_name(file: str) -> str:
    return Path(file).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def _changed(hunk: Hunk, source: str) -> str:
    first, last = _extent(hunk, source)
    pattern = r"\n *".join(re.escape(line.strip()) for line in hunk.old)
    found = [match for match in re.finditer(pattern, source) if first <= match.start() and match.end() <= last]
    if len(found) != 1:
        where = f"{hunk.file} {hunk.scope}".strip()
        raise ValueError(f"{where} has {' / '.join(hunk.old)!r} {len(found)} times, not once")
    start, end = found[0].span()
    line_start = source.rfind("\n", 0, start) + 1
    indent = re.match(" *", source[line_start:])
    return source[:start] + _indented(hunk.new, indent[0] if indent else "") + source[end:]


def _indented(lines: tuple[str, ...], indent: str) -> str:
    """The lines, the first one where the old text began and the others relative to it."""
    if not lines:
        return ""
    own = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join([lines[0].lstrip(), *(f"{indent}{line[own:]}" for line in lines[1:])])


def _extent(hunk: Hunk, source: str) -> tuple[int, int]:
    """From where to where the old text may stand."""
    if not hunk.scope:
        return 0, len(source)
    node: ast.AST = ast.parse(source)
    for name in hunk.scope.split("."):
        node = _member(node, name, hunk)
    assert isinstance(node, ast.stmt)
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    decorators = getattr(node, "decorator_list", [])
    begin = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return offsets[begin - 1], offsets[node.end_lineno or node.lineno]


def _member(node: ast.AST, name: str, hunk: Hunk) -> ast.stmt:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for child in ast.walk(node):
        if child is not node and isinstance(child, kinds) and child.name == name:
            return child
    raise ValueError(f"{hunk.file} has no {hunk.scope}")
