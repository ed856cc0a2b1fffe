"""Clauses of the StepLedger port."""
