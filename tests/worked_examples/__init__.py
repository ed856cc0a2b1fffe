"""Worked examples of the contract, one file per table."""

from tests.worked_examples import ai_calls, bundle, job_queue, outbox, runs, stages, step_ledger

__all__ = ["ai_calls", "bundle", "job_queue", "outbox", "runs", "stages", "step_ledger"]
