"""The base of the store's parts: the database and its prepared batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database


class StorePart:
    """A part of the store."""

    def __init__(self, database: Database, batches: Batches) -> None:
        """Use an open database whose schema is current."""
        self._database = database
        self._batches = batches
