"""The store in memory, for tests and simulations; it behaves like the SQL store."""

from __future__ import annotations

from holdfast.storage.memory.store import MemoryStore

__all__ = ["MemoryStore"]
