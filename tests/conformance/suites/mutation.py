"""Changing one function of an adapter, as a maintainer could have written it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands once in the source of `function` of `owner`, a class or module; with `new` the clause must fail."""

    clause: str
    owner: Any
    function: str
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.clause}: {self.new.strip() or 'nothing'} for {self.old.strip()}"

    def mutated(self) -> Callable[..., Any]:
        """The function with the change. Checks of arguments that are wrapped around it are left out."""
        function = cast("FunctionType", inspect.unwrap(getattr(self.owner, self.function)))
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise ValueError(f"{self.function} has {self.old!r} {source.count(self.old)} times, not once")
        # Outside its class the function has no cell for super().
        changed = source.replace(self.old, self.new).replace("super()", f"super({self.owner.__name__}, self)")
        made: dict[str, Any] = {}
        code = compile(changed, function.__code__.co_filename, "exec")
        exec(code, function.__globals__, made)
        return made[self.function]
