"""What makes a database a throwaway: a schema that says whose it is, with the only code that empties it.

Databases made from one that has it have it too. A database that lacks it has nothing to reset it with, and one that
was restored from a dump under another name refuses.
"""

from __future__ import annotations

from typing import Any, Protocol

SCHEMA = "conformance_throwaway"

INSTALL = """
CREATE SCHEMA conformance_throwaway;

CREATE TABLE conformance_throwaway.marker (server text PRIMARY KEY);

CREATE FUNCTION conformance_throwaway.reset(keep text[]) RETURNS void
LANGUAGE plpgsql
AS $reset$
DECLARE
    kept regclass[] := keep::regclass[];
    deletions text;
BEGIN
    IF NOT EXISTS (
        SELECT FROM conformance_throwaway.marker
        WHERE starts_with(current_database(), 'throwaway_' || server || '_')
    ) THEN
        RAISE EXCEPTION 'database % is no throwaway', current_database()
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;

    PERFORM set_config('lock_timeout', '10s', true);
    IF current_setting('is_superuser')::boolean THEN
        -- Neither a trigger that guards history nor one that reports deletions is meant here.
        PERFORM set_config('session_replication_role', 'replica', true);
    END IF;

    -- One statement for all tables: foreign keys are checked at its end, so no order between tables is needed.
    SELECT string_agg(format('t%s AS (DELETE FROM %s)', c.oid, c.oid::regclass), ', ')
    INTO deletions
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p')
      AND NOT c.relispartition
      AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'conformance_throwaway')
      AND c.oid <> ALL (kept::oid[])
      AND NOT EXISTS (
          SELECT FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
      );
    IF deletions IS NOT NULL THEN
        EXECUTE 'WITH ' || deletions || ' SELECT';
    END IF;
END
$reset$;
"""

MARK = """
INSERT INTO conformance_throwaway.marker (server)
VALUES ($1)
"""

RESET = """
SELECT conformance_throwaway.reset($1::text[])
"""


class CanExecute(Protocol):
    """What is needed of a connection: `execute` as asyncpg's connections and pools have it."""

    async def execute(self, query: str, *args: Any) -> object: ...
