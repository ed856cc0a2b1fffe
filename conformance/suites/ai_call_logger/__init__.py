"""Clauses of the AICallLogger port."""
