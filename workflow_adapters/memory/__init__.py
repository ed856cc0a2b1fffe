"""The four ports in memory: the readable definition of every rule, and a backend for tests."""

from workflow_adapters.memory.store import MemoryStore

__all__ = ["MemoryStore"]
