"""The schema that `migrate()` makes: the reference tables, then what is our own, as numbered migrations."""
