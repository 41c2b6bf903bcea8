"""The store in memory, for tests and worlds in virtual time; it means the same as the SQL store."""

from __future__ import annotations

from holdfast.storage.memory.store import MemoryStore

__all__ = ["MemoryStore"]
