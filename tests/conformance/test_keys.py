"""Keys of two parts: an adapter that joins them finds one row for two keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import pytest

from conformance.backend import Env, Factory, Fixture, Spec
from conformance.choice import Choice
from conformance.clause import Port
from conformance.runner import run_sync
from conformance.suites.values import ALIKE
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_ledger import PocketLedger, Rows
from workflow_adapters.ports.step_ledger import SupportsClearExcept

SAID: Final = "created of the claim is False, but must be True."


class Joined(Rows):
    """The rows of a ledger under one text each."""

    between = "/"

    def __getitem__(self, key: tuple[str, str]) -> Any:
        return super().__getitem__(self._joined(key))

    def __setitem__(self, key: tuple[str, str], value: Any) -> None:
        super().__setitem__(self._joined(key), value)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(self._joined(key))

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        return super().get(self._joined(key), default)

    def _joined(self, key: tuple[str, str]) -> Any:
        return self.between.join(key)


class JoiningLedger(PocketLedger):
    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rows = Joined()


@asynccontextmanager
async def with_stages(env: Env) -> AsyncGenerator[Fixture[JoiningLedger]]:
    """Whose stages have ids of their own."""

    async def new_stage() -> str:
        return uuid4().hex

    yield Fixture(adapter=JoiningLedger(env), new_stage=new_stage)


def said_of(between: str, monkeypatch: pytest.MonkeyPatch, factory: Factory) -> tuple[str, str]:
    monkeypatch.setattr(Joined, "between", between)
    spec = Spec(port=Port.STEP_LEDGER, factory=factory, capabilities=[SupportsClearExcept])
    (result,) = run_sync(spec, Choice(only=["SL-CLAIM-06"])).results
    return result.outcome, "" if result.failure is None else result.failure.contradiction


@pytest.mark.parametrize("between", ["", "/", ":", "|", "-", "_", ".", ",", "#", " ", "\x1f"])
def test_a_ledger_that_joins_its_key_is_found_out(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_of(between, monkeypatch, factory_of(JoiningLedger)) == ("FAIL", SAID)


def test_ids_that_can_not_be_chosen_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_of("/", monkeypatch, with_stages) == ("PASS", "")


def test_no_two_keys_are_the_same() -> None:
    assert len(set(ALIKE)) == len(ALIKE)
