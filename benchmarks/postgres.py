"""What the statements and indexes of the Postgres backend were designed for.

    python -m benchmarks.postgres [P3 P8 ...] [--repetitions 5]

Every figure is a ratio of two that were measured side by side in one run, in an order that is shuffled anew for each
repetition; two of P10 and those of A1 are no ratios. The server is started for it, with fsync on, and removed; its data
are in TMPDIR. Where writing to that disk through takes long, both sides wait for it alike and the ratios say less: a
TMPDIR in memory leaves only what the two cost. P3 and P4 need `pgbench` on the PATH; P1 leaves out peers that are not
installed (pgqueuer, procrastinate).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

from benchmarks import postgres_calls as calls
from benchmarks import postgres_claims as claims
from benchmarks import postgres_fairness as fairness
from benchmarks import postgres_snapshots as snapshots
from benchmarks import postgres_wake_ups as wake_ups
from benchmarks import postgres_writes as writes
from benchmarks.postgres_support import Databases
from conformance.throwaway import blocking_postgres

LINES: dict[str, Callable[[Databases, int], Coroutine[Any, Any, None]]] = {
    "P1": writes.p1,
    "P3": claims.p3,
    "P3-off": claims.p3_without_waiting,
    "P4": claims.p4,
    "P5": claims.p5,
    "P6": claims.p6,
    "P7": claims.p7,
    "P8": fairness.p8,
    "P9": snapshots.p9,
    "P9-served": snapshots.p9_served,
    "P9-cap": snapshots.p9_under_a_cap,
    "P10": wake_ups.p10,
    "P12": writes.p12,
    "A1": calls.a1,
}
SETTINGS = {"fsync": "on", "shared_buffers": "1GB", "max_wal_size": "8GB", "max_connections": "200"}


@contextmanager
def a_server() -> Generator[Databases]:
    with blocking_postgres("embedded-16", settings=SETTINGS) as server:
        print(f"PostgreSQL {server.version}, fsync on", flush=True)
        yield Databases(server.create_database)


def main() -> None:
    parser = argparse.ArgumentParser(description="The Postgres backend, beside bare statements and peers")
    parser.add_argument("lines", nargs="*", choices=[*LINES, []], help=f"of {', '.join(LINES)}; all without")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with a_server() as databases:
        for line in options.lines or LINES:
            asyncio.run(LINES[line](databases, options.repetitions))


if __name__ == "__main__":
    main()
