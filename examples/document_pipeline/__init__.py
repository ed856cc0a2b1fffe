"""A document pipeline: real files, two worker processes, one of them killed, one of them stopped for too long."""
