"""The command line ``workflow-adapters``; needs the extra ``cli``."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Entry point of the console script."""
    if importlib.util.find_spec("typer") is None:
        sys.stderr.write("workflow-adapters needs its command line extra: pip install 'workflow-adapters[cli]'\n")
        raise SystemExit(2)
    from workflow_adapters.cli.app import app

    app()
