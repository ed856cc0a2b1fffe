"""The clauses, a module for each table or concern; `conformance.registry.load` imports them all."""
