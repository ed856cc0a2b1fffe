"""Putting changed modules in the place of those that are imported, for the rest of a process.

Whatever has imported them, directly or not, is forgotten too and imported anew, so that no part of the process still
holds on to what was there before.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

_PACKAGES: Final = ("workflow_adapters", "conformance", "tests")
_OWN: Final = ("tests.mutants.importing", "tests.mutants.catalogue", "tests.mutants.change", "tests.mutants.batch")


def replace_modules(sources: Mapping[str, str]) -> None:
    """From now on these modules, by name, are what the sources say."""
    packages: list[str] = []
    for name in sorted(_dependents(tuple(sources))):
        module = sys.modules.pop(name, None)
        parent, _, own = name.rpartition(".")
        if module is not None and getattr(sys.modules.get(parent), own, None) is module:
            delattr(sys.modules[parent], own)
        if hasattr(module, "__path__"):
            packages.append(name)
    sys.meta_path.insert(0, _Finder(sources))
    # As in a fresh process: a package before what is in it.
    for name in packages:
        import_module(name)


class _Finder:
    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._sources:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(name, spec.origin, self._sources[name])
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def _dependents(names: tuple[str, ...]) -> set[str]:
    """The modules themselves and all that import them, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(importer for importer, imported in imports_of_ours().items() if name in imported)
    return found - set(_OWN)


@cache
def imports_of_ours() -> Mapping[str, frozenset[str]]:
    """What each module of ours that is loaded imports, wherever in it."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith(_PACKAGES)}
    return {name: frozenset(_imported_by(Path(module.__file__))) for name, module in modules.items() if module.__file__}


def _imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
