"""Connections: pragmas, pools, isolation and transactions."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from holdfast.errors import InvalidSetting, Problem
from holdfast.storage.sql.faults import committing, translated

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    import psycopg
    from sqlalchemy import URL, Connection, Dialect, Engine, PoolProxiedConnection, Select

_BUSY_S = 5.0
"""How long to wait for another process's write, or for a free connection."""
_READERS = 8
_POSTGRES_WRITERS = 4
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_KEPT_ALIVE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Without these a lost server blocks callers for a quarter of an hour; a URL's own parameters come first."""
_ABANDONED_S = 15
"""After how long a server ends the transaction of a lost writer, and with it its locks."""
_PRIVATE = 0o600
"""Specifications carry environments, and environments carry secrets."""

_SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={round(_BUSY_S * 1000)}",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA journal_size_limit=67108864",
)
_SQLITE_WRITER_PRAGMAS = ("PRAGMA cache_size=-65536", "PRAGMA wal_autocheckpoint=4000")
_SQLITE_READER_PRAGMAS = ("PRAGMA query_only=ON",)


def read_url(url_or_path: str | Path) -> URL:
    """Read where the database is: a file's path, ``sqlite:///...`` or ``postgresql://...``.

    Raises:
        InvalidSetting: Not a URL, or of a database Holdfast does not support.
    """
    text = str(url_or_path)
    if "://" not in text:
        return make_url("sqlite://").set(database=str(Path(text).absolute()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        _refuse(f"{text.partition('://')[0]}://... is not a database URL")  # the rest may hold a password
    driver = _DRIVERS.get(url.get_backend_name())
    if driver is None:
        _refuse(f"{url.get_backend_name()!r} is not a database Holdfast speaks")
    if driver == "sqlite" and url.database in {None, "", ":memory:"}:
        _refuse("a SQLite database needs a file")
    return url.set(drivername=driver)


def _refuse(message: str) -> NoReturn:
    raise InvalidSetting(problems=[Problem("database", message, ("a file's path", "sqlite:///", "postgresql://"))])


class Database:
    """One database: a pool that writes and a pool that reads.

    SQLite lets one connection write at a time. All writers of this process therefore share one connection
    and wait for it in a fair queue, instead of meeting inside SQLite, which polls.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        """Prepare both pools; connects to nothing yet, but makes a new SQLite file private.

        Raises:
            InvalidSetting: The URL cannot be used.
        """
        self.url = read_url(url_or_path)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._watching: PoolProxiedConnection | None = None
        if self.is_sqlite:
            self._writers = _sqlite_engine(self.url, size=1, pragmas=_SQLITE_WRITER_PRAGMAS, begin="BEGIN IMMEDIATE")
            self._readers = _sqlite_engine(self.url, size=_READERS, pragmas=_SQLITE_READER_PRAGMAS, begin="BEGIN")
        else:
            self._writers = _postgres_engine(self.url, size=_POSTGRES_WRITERS, isolation="READ COMMITTED")
            event.listen(self._writers, "connect", _end_when_abandoned)
            self._readers = _postgres_engine(self.url, size=_READERS, isolation="REPEATABLE READ")

    @property
    def dialect(self) -> Dialect:
        """What statements are compiled for."""
        return self._writers.dialect

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that commits at the end, or rolls back on any exception.

        Raises:
            Uncertain: The connection to a database server was lost while it committed: it may have, or not.
            Unavailable, Internal: As ``faults`` says.
        """
        with translated(), self._writers.connect() as connection, connection.begin() as transaction:
            yield connection
            with committing():
                transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction on one snapshot.

        Raises:
            Unavailable, Internal: As ``faults`` says.
        """
        with translated(), self._readers.connect() as connection:
            yield connection

    def data_version(self) -> int:
        """Return a number that changes with every commit to a SQLite file, by any process; for one thread at a time.

        Raises:
            Unavailable, Internal: As ``faults`` says.
        """
        with translated():
            if self._watching is None:
                # Kept open: the numbers of two connections are unrelated.
                self._watching = self._readers.raw_connection()
                self._watching.detach()
            with closing(self._watching.cursor()) as cursor:
                cursor.execute("PRAGMA data_version")
                [version] = cursor.fetchone() or (0,)
            return int(version)

    def text_of(self, statement: Select[Any]) -> str:
        """Render a frequent statement without parameters, for ``exec_driver_sql``.

        SQLAlchemy's look-up of a compiled statement costs more than the query.
        """
        return str(statement.compile(dialect=self.dialect))

    def close(self) -> None:
        """Close every connection; closing twice is fine."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
        self._writers.dispose()
        self._readers.dispose()


def _sqlite_engine(url: URL, *, size: int, pragmas: tuple[str, ...], begin: str) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=_BUSY_S,
        connect_args={"check_same_thread": False, "timeout": _BUSY_S},
    )
    path = Path(url.database or "")

    def connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
        for pragma in (*_SQLITE_PRAGMAS, *pragmas):
            connection.execute(pragma).close()

    def begun(connection: Connection) -> None:
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(begin)

    def make_private(*_: object) -> None:
        if not path.exists() and path.parent.is_dir():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))

    event.listen(engine, "do_connect", make_private)
    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _postgres_engine(url: URL, *, size: int, isolation: str) -> Engine:
    try:
        return create_engine(
            url,
            paramstyle="format",
            pool_size=size,
            max_overflow=0,
            pool_timeout=_BUSY_S,
            pool_pre_ping=True,
            isolation_level=isolation,
            connect_args={name: value for name, value in _KEPT_ALIVE.items() if name not in url.query},
        )
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        problem = Problem("database", "the PostgreSQL driver is not installed", hint="pip install 'psycopg[binary]'")
        raise InvalidSetting(problems=[problem]) from error


def _end_when_abandoned(connection: psycopg.Connection, _: object) -> None:
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_ABANDONED_S}s'")
    connection.autocommit = False
