"""Mistakes in the step ledger and the AI call logger."""

from typing import Final

from tests.conformance.suites.mutation import Mutant
from workflow_adapters.memory import ai_call_logger
from workflow_adapters.memory.ai_call_logger import MemoryAICallLogger
from workflow_adapters.memory.step_ledger import MemoryStepLedger

_STEPS: Final = "tables.steps.by_stage[stage_record_id]"
_FOLDED: Final = f"sorted({_STEPS}, key=lambda step: (step.seq, step.step_id.lower()))"

STEP_LEDGER_MUTANTS: Final = (
    Mutant("SL-CLAIM-02", MemoryStepLedger, "claim", "external_key=step.external_key", "external_key=None"),
    Mutant("SL-UPDATE-03", MemoryStepLedger, "update", "updated_at=self._session.now(), ", ""),
    Mutant("SL-CAS-02", MemoryStepLedger, "compare_and_set", "step.status != expected.status or", ""),
    Mutant("SL-CAS-03", MemoryStepLedger, "compare_and_set", "or expected.attempt not in (UNSET, step.attempt)", ""),
    Mutant("SL-CAS-04", MemoryStepLedger, "compare_and_set", "not in (UNSET, step.attempt)", "!= step.attempt"),
    Mutant("SL-LIST-01", MemoryStepLedger, "list", _STEPS, f"sorted({_STEPS}, key=lambda step: step.step_id)"),
    Mutant("SL-LIST-02", MemoryStepLedger, "list", _STEPS, _FOLDED),
    Mutant(
        "SL-CLEAR-01",
        MemoryStepLedger,
        "clear_except",
        "if step.step_id not in kept:",
        "if kept and step.step_id not in kept:",
    ),
)

AI_CALL_LOGGER_MUTANTS: Final = (
    Mutant("AI-LOG-01", MemoryAICallLogger, "get_stats", "await self._calls.flush()", "pass"),
    Mutant("AI-RECORDED-02", MemoryAICallLogger, "is_recorded", "await self._calls.flush()", "pass"),
    Mutant("AI-RECORDED-03", MemoryAICallLogger, "is_recorded", " or calls.by_metadata_batch.count(batch_id)", ""),
    Mutant(
        "AI-STATS-03",
        ai_call_logger,
        "_with_topic",
        "call.topic.startswith(prefix)",
        "call.topic.lower().startswith(prefix.lower())",
    ),
    Mutant(
        "AI-STATS-04", ai_call_logger, "_decimal_sum", "_EXACT.add(total, Decimal(repr(cost)))", "total + Decimal(cost)"
    ),
    Mutant(
        "AI-STATS-01",
        MemoryAICallLogger,
        "get_stats",
        "by_model.setdefault(call.model_key",
        "by_model.setdefault(call.model_id",
    ),
    Mutant(
        "AI-BATCH-02",
        ai_call_logger,
        "write_calls",
        "if None in request or tables.ai_calls.by_request.get(request) is None:",
        "if True:",
    ),
    Mutant("AI-BATCH-06", ai_call_logger, "batch_results", "if request_id is not None:", "if True:"),
)
