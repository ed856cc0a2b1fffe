"""A process that sees what `pip install workflow-adapters` brings, and nothing else that is installed here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

_HIDE = """
import re, sys
from importlib import metadata

def brought(name, seen):
    seen.add(re.sub("[-_.]+", "-", name).lower())
    for needed in metadata.requires(name) or []:
        further = re.match(r"[\\w.-]+", needed)[0]
        if "extra ==" not in needed and re.sub("[-_.]+", "-", further).lower() not in seen:
            try:
                brought(further, seen)
            except metadata.PackageNotFoundError:
                pass  # for another version of Python
    return seen

base = brought("workflow-adapters", set())
hidden = {
    module
    for module, owners in metadata.packages_distributions().items()
    if not base & {re.sub("[-_.]+", "-", owner).lower() for owner in owners}
}

class Hide:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide)
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", _HIDE + program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
