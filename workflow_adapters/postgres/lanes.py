"""Lanes: what a claimer serves, as the values of job_queue.wa_lane that it may take.

A lane is a workflow, or one version of it. `workflow_adapters.postgres.schema.job_queue` has the expression that makes
a job's lane from its payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workflow_adapters.inputs.runs import ServedDefinition

DEAD_LANE: Final = ""
"""Dead jobs. Whoever serves anything serves them, so that they are failed and not left lying."""

FIRST_LANE: Final = DEAD_LANE
LAST_LANE: Final = ":"
"""Lanes begin with a digit. The last one is for what no claim can name, longer than any id of ours."""


def lane(workflow_id: str, version: str | None) -> str:
    """The lane of jobs of a workflow that are pinned to the version, or to none. The length keeps pairs apart."""
    pinned = "" if version is None else f"/{version}"
    return f"{len(workflow_id.encode())}:{workflow_id}{pinned}"


def lanes_of(serves: Sequence[ServedDefinition]) -> tuple[str, ...]:
    """The lanes that are served: the pair of each entry, the unpinned jobs of its workflow, and dead jobs."""
    lanes = {DEAD_LANE}
    for served in serves:
        lanes.add(lane(served.workflow_id, None))
        lanes.add(lane(served.workflow_id, served.version))
    return tuple(sorted(lanes))
