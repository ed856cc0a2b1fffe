"""Ids are permanent: ids.json beside this module remembers every one that there has ever been, with its sentence.

A clause that is taken out is retired there and its id never used again. The sentence stands beside the id so that a
change shows of what is only a better wording and what is another rule, which needs another id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.registry import Registry

PATH: Final = Path(__file__).with_name("ids.json")


@dataclass(frozen=True, slots=True)
class Ids:
    """The sentence of each id."""

    active: Mapping[str, str]
    retired: Mapping[str, str]


def read(path: Path = PATH) -> Ids:
    values = json.loads(path.read_text(encoding="utf-8"))
    return Ids(values["active"], values["retired"])


def write(ids: Ids, path: Path = PATH) -> None:
    values = {"active": dict(sorted(ids.active.items())), "retired": dict(sorted(ids.retired.items()))}
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def complaints(ids: Ids, registry: Registry) -> list[str]:
    """What stands between the remembered ids and the registered ones."""
    registered = _sentences(registry)
    told = [f"{each} was retired and must not be used again" for each in registered if each in ids.retired]
    told += [f"{each} has disappeared" for each in ids.active if each not in registered]
    told += [f"{each} is new" for each in registered if each not in ids.active and each not in ids.retired]
    told += [
        f"{each} said: {ids.active[each]!r}, and says: {text!r}"
        for each, text in registered.items()
        if ids.active.get(each, text) != text
    ]
    return sorted(told)


def updated(ids: Ids, registry: Registry) -> Ids:
    """The ids as they are now; ValueError when a retired one is in use again."""
    registered = _sentences(registry)
    reused = sorted(registered.keys() & ids.retired.keys())
    if reused:
        raise ValueError(f"retired ids are in use again: {', '.join(reused)}")
    gone = {each: text for each, text in ids.active.items() if each not in registered}
    return Ids(registered, {**ids.retired, **gone})


def _sentences(registry: Registry) -> dict[str, str]:
    return {clause.id: clause.text for clause in registry.clauses()}
