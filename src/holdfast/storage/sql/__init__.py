"""The store on a SQL database: SQLite embedded, PostgreSQL in production, through the same code."""

from __future__ import annotations

from holdfast.storage.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
