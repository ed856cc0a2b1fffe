"""The methods of an adapter stand in the order of the ports that it implements: the two can be read side by side."""

import inspect

import pytest

from workflow_adapters.arguments import argument_checks
from workflow_adapters.conveniences import ConvenienceRows
from workflow_adapters.memory.ai_call_logger import MemoryAICallLogger
from workflow_adapters.memory.annotations import MemoryAnnotations
from workflow_adapters.memory.artifacts import MemoryArtifacts
from workflow_adapters.memory.definitions import MemoryDefinitions
from workflow_adapters.memory.idempotency import MemoryIdempotency
from workflow_adapters.memory.job_acks import MemoryJobAcks
from workflow_adapters.memory.job_queue import MemoryJobQueue
from workflow_adapters.memory.job_sweeps import MemoryJobSweeps
from workflow_adapters.memory.logs import MemoryLogs
from workflow_adapters.memory.operations import MemoryOperations
from workflow_adapters.memory.outbox import MemoryOutbox
from workflow_adapters.memory.purges import MemoryPurges
from workflow_adapters.memory.runs import MemoryRuns
from workflow_adapters.memory.stages import MemoryStages
from workflow_adapters.memory.step_ledger import MemoryStepLedger
from workflow_adapters.ports import (
    ai_call_logger,
    annotations,
    definitions,
    idempotency,
    job_queue,
    logs,
    operations,
    outbox,
    runs,
    stages,
    step_ledger,
)

JOB_QUEUE = (
    job_queue.JobQueue,
    job_queue.SupportsDefer,
    job_queue.SupportsAbsoluteLease,
    job_queue.SupportsWorkerAdoption,
    job_queue.SupportsFairness,
    job_queue.SupportsWaiting,
    job_queue.SupportsDequeueMany,
    job_queue.SupportsCompleteMany,
    job_queue.SupportsHeartbeat,
)
IMPLEMENTED: dict[type, tuple[type, ...]] = {
    MemoryRuns: (runs.Runs,),
    MemoryDefinitions: (definitions.Definitions,),
    MemoryStages: (stages.Stages,),
    MemoryLogs: (logs.Logs,),
    MemoryAnnotations: (annotations.Annotations,),
    MemoryOutbox: (outbox.Outbox, outbox.SupportsOutboxLease),
    MemoryIdempotency: (idempotency.Idempotency,),
    MemoryArtifacts: (ConvenienceRows,),
    MemoryJobQueue: JOB_QUEUE,
    MemoryJobAcks: JOB_QUEUE,
    MemoryJobSweeps: JOB_QUEUE,
    MemoryStepLedger: (step_ledger.StepLedger, step_ledger.SupportsClearExcept),
    MemoryAICallLogger: (
        ai_call_logger.AICallLogger,
        ai_call_logger.SupportsListCalls,
        ai_call_logger.SupportsFlush,
    ),
    MemoryOperations: (operations.Operations,),
    MemoryPurges: (operations.Operations,),
}


def public(owner: type) -> list[str]:
    return [name for name in vars(owner) if not name.startswith("_")]


@pytest.mark.parametrize("adapter", IMPLEMENTED, ids=lambda adapter: adapter.__name__)
def test_methods_stand_in_the_order_of_the_ports(adapter: type) -> None:
    order = [name for port in IMPLEMENTED[adapter] for name in public(port)]
    implemented = public(adapter)
    assert implemented == [name for name in order if name in implemented]


@pytest.mark.parametrize("adapter", IMPLEMENTED, ids=lambda adapter: adapter.__name__)
def test_every_checked_method_runs_its_checks(adapter: type) -> None:
    for port in IMPLEMENTED[adapter]:
        for name in argument_checks(port):
            if name in vars(adapter):
                method = vars(adapter)[name]
                assert inspect.unwrap(method) is not method, f"{adapter.__name__}.{name} runs no checks"
