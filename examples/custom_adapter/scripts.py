"""The Lua scripts: what is atomic runs inside Redis."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LUA: Final = Path(__file__).parent / "lua"
_PRELUDE: Final = (_LUA / "prelude.lua").read_text()


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text, what Redis knows it by, and whether it writes."""

    text: str = field(repr=False)
    writes: bool = True
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        # With a line of flags, Redis refuses the whole script where it may not write, and not a command half-way.
        flags = "" if self.writes else " flags=no-writes"
        object.__setattr__(self, "text", f"#!lua{flags}\n{_PRELUDE}\n{self.text}")
        object.__setattr__(self, "digest", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


def _read(name: str) -> str:
    return (_LUA / f"{name}.lua").read_text()


ENQUEUE: Final = Script(_read("enqueue"))
CLAIM: Final = Script(_read("claim"))
ACKNOWLEDGE: Final = Script(_read("acknowledge"))
TOUCH: Final = Script(_read("touch"))
RELEASE_STALE: Final = Script(_read("release_stale"))
EXPIRE_RUNAWAY: Final = Script(_read("expire_runaway"))
CANCEL_RUN: Final = Script(_read("cancel_run"))
DELETE: Final = Script(_read("delete"))
LIST_RUN: Final = Script(_read("list_run"), writes=False)
