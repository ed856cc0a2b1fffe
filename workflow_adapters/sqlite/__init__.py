"""The SQLite backend: aiosqlite, any number of readers beside one writer, on a file that processes may share."""
