"""The example services, over HTTP and as processes."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

PATIENCE = 60


@contextmanager
def order_service(database: str, port: int, **environment: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "uvicorn", "examples.fastapi_worker.app:app", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning"],
        env={**os.environ, "ORDERS_URL": database, "ORDERS_LEASE_SECONDS": "1", **environment},
    )
    try:
        until(lambda: answers(port))
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/orders.db"
    return request.getfixturevalue("postgres_dsn")


def show(port: int, order_id: str) -> dict[str, Any]:
    return httpx.get(f"http://127.0.0.1:{port}/orders/{order_id}").json()


def completed(port: int, order_id: str) -> dict[str, Any] | None:
    order = show(port, order_id)
    return order if order["status"] == "COMPLETED" else None


def test_an_order_goes_through_all_stages_and_a_repeated_request_is_replayed(database: str, port: int) -> None:
    base = f"http://127.0.0.1:{port}"
    with order_service(database, port, ORDERS_LEASE_SECONDS="10"):
        order = {"item": "book", "quantity": 2}
        first = httpx.post(f"{base}/orders", json=order, headers={"Idempotency-Key": "k-1"})
        again = httpx.post(f"{base}/orders", json=order, headers={"Idempotency-Key": "k-1"})
        assert (first.status_code, again.status_code) == (202, 202)
        assert again.json() == first.json()
        assert again.headers["Idempotency-Replayed"] == "true"
        done = until(lambda: completed(port, first.json()["order_id"]))
        assert [stage["stage"] for stage in done["stages"]] == ["reserve", "charge", "ship"]
        assert all(step["status"] == "completed" for stage in done["stages"] for step in stage["steps"])
        assert done["times_charged"] == 1
        health = httpx.get(f"{base}/readyz").json()
        assert health["ready"] is True
        assert health["queue"]["depth"]["COMPLETED"] == 3
        assert httpx.get(f"{base}/orders/nope").status_code == 404
        assert httpx.post(f"{base}/orders", json={"item": "", "quantity": 0}).status_code == 422


def test_an_order_is_shown_while_somebody_writes(tmp_path: Path, port: int) -> None:
    with order_service(f"sqlite:///{tmp_path}/orders.db", port, ORDERS_LEASE_SECONDS="10"):
        placed = httpx.post(f"http://127.0.0.1:{port}/orders", json={"item": "book", "quantity": 1}).json()
        until(lambda: completed(port, placed["order_id"]))
        with closing(sqlite3.connect(tmp_path / "orders.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            assert show(port, placed["order_id"])["times_charged"] == 1


def test_an_order_survives_the_death_of_the_process(database: str, port: int) -> None:
    with order_service(database, port, ORDERS_WORK_SECONDS="3") as process:
        placed = httpx.post(f"http://127.0.0.1:{port}/orders", json={"item": "book", "quantity": 1}).json()
        until(lambda: [s for s in show(port, placed["order_id"])["stages"] if s["stage"] == "charge"])
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    with order_service(database, port):
        done = until(lambda: completed(port, placed["order_id"]))
        attempts = {stage["stage"]: stage["attempt"] for stage in done["stages"]}
        assert attempts["charge"] == 2
        assert done["times_charged"] == 1


def test_a_service_without_a_framework() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.asyncio_service"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "19 of 20 jobs completed" in done.stdout
    assert "stage-4 failed: PermanentJobError: this one can not work" in done.stdout
