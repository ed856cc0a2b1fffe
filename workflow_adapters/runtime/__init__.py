"""The loops that a service runs on the ports: worker, reaper, outbox relay, purger. Any conforming adapter will do."""

from workflow_adapters.runtime.job_context import JobContext
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.outbox_relay import OutboxRelay, Sink
from workflow_adapters.runtime.outcomes import Defer, Handler, LeaseLostError, Outcome, PermanentJobError, Suspend
from workflow_adapters.runtime.purger import Purger, Retention
from workflow_adapters.runtime.reaper import Reaper
from workflow_adapters.runtime.service import WorkflowService, run_workflow_service
from workflow_adapters.runtime.worker import Worker

__all__ = [
    "Defer",
    "Event",
    "Handler",
    "JobContext",
    "LeaseLostError",
    "Observation",
    "OutboxRelay",
    "Outcome",
    "PermanentJobError",
    "Purger",
    "Reaper",
    "Retention",
    "Sink",
    "Suspend",
    "Worker",
    "WorkflowService",
    "run_workflow_service",
]
