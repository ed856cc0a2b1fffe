"""Holds a throwaway server until its standard input ends: ``hold_server.py RUNG``. A program for tests to end."""

import json
import sys

from conformance.throwaway import blocking_postgres

with blocking_postgres(sys.argv[1]) as server:
    facts = {"id": server.dsn.split("throwaway_")[1].split("_")[0], "dsn": server.dsn, "rung": server.rung}
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
