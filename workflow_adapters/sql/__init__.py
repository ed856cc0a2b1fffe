"""What both databases share: operations as generators of statements, and the names of tables and columns.

An operation is written once, as a generator that yields `Statement`s and is sent their rows. SQLite drives it in the
connection's thread, in one hop; Postgres drives it with awaits. See docs/decisions/0002-operations-as-generators.md.
"""
