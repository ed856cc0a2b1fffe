"""Immutable inputs, patches and filters, one file per table. Each checks itself when it is built."""
