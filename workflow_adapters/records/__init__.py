"""Immutable rows and answers that adapters hand out, one file per table."""
