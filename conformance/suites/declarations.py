"""What an adapter is declared to be, and what it has."""

from __future__ import annotations

from typing import Any

from conformance.clause import MUST, SHOULD, Port
from conformance.context import Context
from conformance.registry import clause


def _register(port: Port) -> None:
    @clause(
        f"{port.value}-DECLARE-01",
        MUST,
        text=f"The adapter has every method of {port.title} and of each capability that it declares.",
        why="A host that finds a method missing finds it out in production.",
        hints=["Is the name spelt as in the port? Is the capability declared by mistake?"],
    )
    async def has_what_it_declares(ctx: Context[Any]) -> None:
        missing = ctx.missing_methods()
        because = f"The adapter has no {', '.join(missing)}."
        ctx.expect("methods that are missing", missing, because).equals([])

    @clause(
        f"{port.value}-DECLARE-02",
        SHOULD,
        text="Every capability whose methods the adapter has is declared, or named as a gap with a reason.",
        why="A host finds capabilities by their methods and relies on them, and what is not declared is not tried.",
        hints=["Declare the capability, or name it in `gaps` with the reason why it is not promised."],
        after=[f"{port.value}-DECLARE-01"],
    )
    async def declares_what_it_has(ctx: Context[Any]) -> None:
        undeclared = ctx.undeclared_capabilities()
        named = ", ".join(undeclared)
        because = f"The adapter has the methods of {named}; neither `capabilities` nor --declare says so."
        ctx.expect("capabilities that are there and not declared", undeclared, because).equals([])

    del has_what_it_declares, declares_what_it_has


for _port in Port:
    _register(_port)
