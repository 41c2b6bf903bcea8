"""The store on SQLite in memory, for simulated worlds and fast tests: Holdfast's own, without a disk or a pool."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, create_engine

from holdfast.storage.sql import migrations
from holdfast.storage.sql.batch import Batches
from holdfast.storage.sql.controller import SqlControllerStore
from holdfast.storage.sql.engine import Database, translated
from holdfast.storage.sql.store import SqlStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sqlalchemy import Connection, Dialect, Select

_STATEMENTS = 2000
"""How many prepared statements a connection keeps."""


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:", check_same_thread=False, isolation_level=None, cached_statements=_STATEMENTS
    )
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


_ENGINE = create_engine("sqlite://", creator=_connect, poolclass=NullPool)
"""Shared by all databases, so that each statement is compiled once in a process."""


class MemoryDatabase(Database):
    """A database that lives as long as this object: one connection, used by one thread at a time."""

    def __init__(self, image: bytes = b"") -> None:
        """Begin with the image of a database, or with nothing."""
        self.is_sqlite = True
        self._lock = RLock()
        self._connection = _ENGINE.connect()
        self._connection.begin()  # to SQLAlchemy all is one transaction: to end one costs more than most statements
        self._driver: sqlite3.Connection = self._connection.connection.driver_connection  # type: ignore[assignment] # ours
        if image:
            self._driver.deserialize(image)
        self._commits = 0

    @property
    def dialect(self) -> Dialect:
        """What statements are compiled for."""
        return _ENGINE.dialect

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that commits at the end, or rolls back on any exception."""
        with self._lock, translated():
            self._driver.execute("BEGIN")
            try:
                yield self._connection
            except BaseException:
                self._driver.execute("ROLLBACK")
                raise
            self._driver.execute("COMMIT")
            self._commits += 1

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Keep everybody else out: what is read is one snapshot."""
        with self._lock, translated():
            yield self._connection

    def data_version(self) -> int:
        """Return a number that changes with every commit."""
        return self._commits

    def text_of(self, statement: Select[Any]) -> str:
        """Render a frequent statement, once in a process."""
        return _text_of(statement)

    def image(self) -> bytes:
        """Return everything that the database holds."""
        return self._driver.serialize()

    def close(self) -> None:
        """Do nothing: a world closes its store with each life of its controller, and goes on with the same."""


class MemoryStore(SqlStore):
    """A store that begins empty."""

    def __init__(self) -> None:
        """Begin with the tables alone."""
        SqlControllerStore.__init__(self, MemoryDatabase(_empty()), _batches())


@cache
def _empty() -> bytes:
    """Return the image of a database that holds the tables alone: to make them takes as long as half a world."""
    database = MemoryDatabase()
    migrations.bring_up(database)
    return database.image()


@cache
def _batches() -> Batches:
    return Batches(_ENGINE.dialect)


@cache
def _text_of(statement: Select[Any]) -> str:
    return str(statement.compile(dialect=_ENGINE.dialect))
