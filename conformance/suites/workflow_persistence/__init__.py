"""Clauses of the WorkflowPersistence port."""
