"""A shell to type commands in."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from workflow_adapters.cli.app import app
from workflow_adapters.cli.output import console

runner = CliRunner()
console.width = 200  # it has read COLUMNS, or not, when it was made


class Shell:
    """Types commands against one database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *words: str, code: int = 0) -> Result:
        result = runner.invoke(app, list(words), env={"WORKFLOW_ADAPTERS_URL": self.url})
        assert result.exit_code == code, result.output
        return result

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code).stdout)
