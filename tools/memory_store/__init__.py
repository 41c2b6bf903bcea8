"""A store in memory, for tests, benchmarks and simulated worlds; it behaves like the SQL store."""

from __future__ import annotations

from tools.memory_store.store import MemoryStore

__all__ = ["MemoryStore"]
