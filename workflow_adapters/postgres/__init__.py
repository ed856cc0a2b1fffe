"""The Postgres backend: asyncpg, on the tables that a TypeScript engine on the same database has too."""
