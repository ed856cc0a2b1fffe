"""What the loops report: log records with stable names and fields, and counters.

Every record has the extra fields ``event`` (one of the names below) and those that the event needs (``job_id``,
``error`` …), so that a log pipeline can select on them. Counters are plain integers, read by the health router.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from enum import StrEnum

_logger = logging.getLogger("workflow_adapters.runtime")


class Event(StrEnum):
    """Names of log records and counters."""

    JOB_COMPLETED = "job_completed"
    JOB_FAILED = "job_failed"
    JOB_RETRIED = "job_retried"
    JOB_SUSPENDED = "job_suspended"
    JOB_DEFERRED = "job_deferred"
    JOB_NOT_SERVED = "job_not_served"
    JOB_TIMED_OUT = "job_timed_out"
    LEASE_LOST = "lease_lost"
    ACK_SUPERSEDED = "ack_superseded"
    ACK_RETRIED = "ack_retried"
    ACK_ABANDONED = "ack_abandoned"
    HEARTBEAT_FAILED = "heartbeat_failed"
    LOOP_BLOCKED = "loop_blocked"
    HANDLER_WILL_NOT_END = "handler_will_not_end"
    HANDLER_FAILED_WHILE_CANCELLED = "handler_failed_while_cancelled"
    CLAIM_FAILED = "claim_failed"
    CLAIM_RETURNED = "claim_returned"
    WORKER_STARTED = "worker_started"
    WORKER_STOPPING = "worker_stopping"
    WORKER_STOPPED = "worker_stopped"
    JOBS_RELEASED = "jobs_released"
    JOBS_EXPIRED = "jobs_expired"
    REAPER_FAILED = "reaper_failed"
    EVENT_PUBLISHED = "event_published"
    EVENT_RETRIED = "event_retried"
    EVENT_DEAD = "event_dead"
    EVENTS_CLAIMED_WITHOUT_LEASE = "events_claimed_without_lease"
    RELAY_FAILED = "relay_failed"
    ROWS_PURGED = "rows_purged"
    PURGER_FAILED = "purger_failed"
    CALLBACK_FAILED = "callback_failed"
    HEALTH_CHECK_FAILED = "health_check_failed"


_LEVELS = {
    Event.JOB_COMPLETED: logging.DEBUG,
    Event.EVENT_PUBLISHED: logging.DEBUG,
    Event.JOB_FAILED: logging.ERROR,
    Event.EVENT_DEAD: logging.ERROR,
    Event.HANDLER_WILL_NOT_END: logging.ERROR,
    Event.CALLBACK_FAILED: logging.ERROR,
    Event.WORKER_STARTED: logging.INFO,
    Event.WORKER_STOPPING: logging.INFO,
    Event.WORKER_STOPPED: logging.INFO,
    Event.JOB_SUSPENDED: logging.INFO,
    Event.JOB_DEFERRED: logging.INFO,
    Event.ROWS_PURGED: logging.INFO,
    Event.CLAIM_RETURNED: logging.INFO,
    Event.EVENTS_CLAIMED_WITHOUT_LEASE: logging.INFO,
}


class Observation:
    """Counts and logs events of one loop. Safe from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[Event] = Counter()
        self._lock = threading.Lock()

    def count(self, event: Event, times: int = 1) -> None:
        with self._lock:
            self.counts[event] += times

    def note(self, event: Event, message: str, **fields: object) -> None:
        """Count `event` and log `message` with the fields; unlisted events are warnings."""
        self.count(event)
        level = _LEVELS.get(event, logging.WARNING)
        if _logger.isEnabledFor(level):
            extra = {"event": event.value, "loop": self.name, **fields}
            _logger.log(level, "%s: %s", self.name, message, extra=extra)


def describe(error: BaseException) -> str:
    """An error as it is recorded: its class and its message, whatever the host's own class does when it is asked."""
    try:
        text = str(error)
    except Exception as further:  # noqa: BLE001  # an error that can not be read must still be recorded
        text = f"its message can not be read ({type(further).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
