"""What appending and claiming outbox events need beyond the reference."""

from __future__ import annotations

from typing import Final, LiteralString

from workflow_adapters.postgres.schema.migration import Index, Migration

# Locks first, in one order, and then a statement of its own: its snapshot is younger than the locks, so it sees every
# number that was given under them. By the hash, which is what is locked: two runs may share one. A writer without a
# lock may still take a number; then what was stored is taken back and numbered anew, without an error that would cost
# the caller's transaction.
_APPEND: Final[LiteralString] = """
CREATE FUNCTION @wa_append_outbox_events(
    ids text[], runs text[], types text[], payloads text[], causations text[], occurred text[], created text
) RETURNS boolean LANGUAGE plpgsql AS $function$
DECLARE
    stored bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(key)
    FROM (SELECT DISTINCT hashtext(run) AS key FROM unnest(runs) AS run ORDER BY 1 OFFSET 0) AS locks;
    FOR attempt IN 1..20 LOOP
        INSERT INTO @outbox_events (
            id, "createdAt", "workflowRunId", sequence, "eventType", payload, "causationId", "occurredAt", "retryCount"
        )
        SELECT
            event.id, created::timestamp, event.run,
            last.sequence + row_number() OVER (PARTITION BY event.run ORDER BY event.position),
            event.type, event.payload::jsonb, event.causation, event.occurred::timestamp, 0
        FROM unnest(ids, runs, types, payloads, causations, occurred)
            WITH ORDINALITY AS event (id, run, type, payload, causation, occurred, position)
        JOIN (
            SELECT
                name,
                coalesce((SELECT max(e.sequence) FROM @outbox_events e WHERE e."workflowRunId" = name), 0) AS sequence
            FROM (SELECT DISTINCT unnest(runs)) AS run (name)
        ) AS last ON last.name = event.run
        ORDER BY event.run COLLATE "C", event.position
        ON CONFLICT ("workflowRunId", sequence) DO NOTHING;
        GET DIAGNOSTICS stored = ROW_COUNT;
        IF stored = cardinality(ids) THEN
            RETURN true;
        END IF;
        DELETE FROM @outbox_events e WHERE e.id = ANY (ids);
    END LOOP;
    RETURN false;
END
$function$
"""

OUTBOX: Final = Migration(
    version=3,
    name="appending and claiming outbox events",
    statements=(_APPEND,),
    indexes=(
        Index(
            name="wa_outbox_events_unpublished",
            on='@outbox_events ("workflowRunId" COLLATE "C", sequence) WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL',
        ),
    ),
)
