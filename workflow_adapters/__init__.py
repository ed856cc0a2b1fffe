"""Durable workflow state for Python: four ports, three backends, one contract."""

from workflow_adapters.built_in import (
    BuiltInAdapters,
    BuiltInAICallLogger,
    BuiltInJobQueue,
    BuiltInPersistence,
    BuiltInPostgresAdapters,
    BuiltInStepLedger,
    BuiltInTransaction,
)
from workflow_adapters.clock import Clock, ManualClock, SystemClock
from workflow_adapters.errors import (
    AlreadyExistsError,
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    InvalidValueError,
    NotFoundError,
    OutcomeUnknownError,
    SchemaError,
    StaleVersionError,
    TransactionConflictError,
    UsageError,
    WorkflowAdapterError,
)
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.inputs.annotations import AnnotationActor, AnnotationFilters, CreateAnnotationInput
from workflow_adapters.inputs.artifacts import SaveArtifactInput
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.inputs.job_queue import (
    LEASE_ABSOLUTE_CAP,
    LEASE_HEARTBEAT_LOST,
    EnqueueJobInput,
    JobQueueFairness,
    RetryBackoff,
)
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.operations import JobFilters, RunFilters
from workflow_adapters.inputs.outbox import CreateOutboxEventInput
from workflow_adapters.inputs.runs import CreateRunInput, ServedDefinition, Serves, UpdateRunInput
from workflow_adapters.inputs.stages import CreateStageInput, UpdateStageInput, UpsertStageInput
from workflow_adapters.inputs.step_ledger import NewStep, StepRecordExpectation, StepRecordPatch
from workflow_adapters.json_values import JsonObject, JsonValue
from workflow_adapters.opening import open_adapters, open_memory, open_postgres, open_sqlite
from workflow_adapters.ports.adapters import Adapters, Ports, TransactionAdapters
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsFlush, SupportsListCalls
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import (
    JobQueue,
    SupportsAbsoluteLease,
    SupportsCompleteMany,
    SupportsDefer,
    SupportsDequeueMany,
    SupportsFairness,
    SupportsHeartbeat,
    SupportsWaiting,
    SupportsWorkerAdoption,
)
from workflow_adapters.ports.operations import Operations
from workflow_adapters.ports.outbox import SupportsOutboxLease
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.ai_call_logger import AICallRecord, AIHelperStats, ModelStats
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.records.artifacts import MISSING, WorkflowArtifactRecord
from workflow_adapters.records.definitions import DefinitionVersionCount, WorkflowDefinitionRecord
from workflow_adapters.records.idempotency import Acquired, IdempotencyFence, IdempotencyOutcome, InProgress, Replay
from workflow_adapters.records.job_queue import DequeueResult, JobAckFence, JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import OutboxStats, Page, QueueStats
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.records.runs import PurgeableRun, WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import (
    PURGEABLE_STATUSES,
    TERMINAL_STATUSES,
    ArtifactType,
    JobAckOutcome,
    LogLevel,
    Status,
    StepKind,
    StepStatus,
)
from workflow_adapters.records.step_ledger import StepCas, StepClaim, StepRecord
from workflow_adapters.unset import UNSET, Unset

__all__ = [
    "LEASE_ABSOLUTE_CAP",
    "LEASE_HEARTBEAT_LOST",
    "MISSING",
    "PURGEABLE_STATUSES",
    "TERMINAL_STATUSES",
    "UNSET",
    "AICallLogger",
    "AICallRecord",
    "AIHelperStats",
    "Acquired",
    "Adapters",
    "AlreadyExistsError",
    "AnnotationActor",
    "AnnotationFilters",
    "ArtifactType",
    "BackendBusyError",
    "BackendError",
    "BackendUnavailableError",
    "BuiltInAICallLogger",
    "BuiltInAdapters",
    "BuiltInJobQueue",
    "BuiltInPersistence",
    "BuiltInPostgresAdapters",
    "BuiltInStepLedger",
    "BuiltInTransaction",
    "Clock",
    "ConfigurationError",
    "CreateAICallInput",
    "CreateAnnotationInput",
    "CreateDefinitionInput",
    "CreateLogInput",
    "CreateOutboxEventInput",
    "CreateRunInput",
    "CreateStageInput",
    "DefinitionVersionCount",
    "DequeueResult",
    "EnqueueJobInput",
    "IdempotencyFence",
    "IdempotencyOutcome",
    "InProgress",
    "InvalidValueError",
    "JobAckFence",
    "JobAckOutcome",
    "JobFilters",
    "JobQueue",
    "JobQueueFairness",
    "JobRecord",
    "JsonObject",
    "JsonValue",
    "LogLevel",
    "ManualClock",
    "ModelStats",
    "NewStep",
    "NotFoundError",
    "Operations",
    "OutboxLease",
    "OutboxRecord",
    "OutboxStats",
    "OutcomeUnknownError",
    "Page",
    "Ports",
    "PurgeableRun",
    "QueueStats",
    "Replay",
    "RetryBackoff",
    "RunFilters",
    "SaveArtifactInput",
    "SchemaError",
    "ServedDefinition",
    "Serves",
    "StaleVersionError",
    "Status",
    "StepCas",
    "StepClaim",
    "StepKind",
    "StepLedger",
    "StepRecord",
    "StepRecordExpectation",
    "StepRecordPatch",
    "StepStatus",
    "SupportsAbsoluteLease",
    "SupportsClearExcept",
    "SupportsCompleteMany",
    "SupportsDefer",
    "SupportsDequeueMany",
    "SupportsFairness",
    "SupportsFlush",
    "SupportsHeartbeat",
    "SupportsListCalls",
    "SupportsOutboxLease",
    "SupportsWaiting",
    "SupportsWorkerAdoption",
    "SystemClock",
    "TransactionAdapters",
    "TransactionConflictError",
    "Unset",
    "UpdateRunInput",
    "UpdateStageInput",
    "UpsertStageInput",
    "UsageError",
    "WorkflowAdapterError",
    "WorkflowAnnotationRecord",
    "WorkflowArtifactRecord",
    "WorkflowDefinitionRecord",
    "WorkflowLogRecord",
    "WorkflowPersistence",
    "WorkflowRunRecord",
    "WorkflowStageRecord",
    "new_id",
    "open_adapters",
    "open_memory",
    "open_postgres",
    "open_sqlite",
    "supports",
]
