"""Clauses of the JobQueue port."""
