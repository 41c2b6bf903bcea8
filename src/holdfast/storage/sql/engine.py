"""Connections: pragmas, pools, isolation, transactions, and what the driver's errors mean.

An error that passes by itself is ``Unavailable``, one that needs a person is ``Internal``; the driver's own exception
stays on ``__cause__``.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import QueuePool, create_engine, event, exc, make_url

from holdfast.errors import HoldfastError, Internal, InvalidRequest, InvalidSetting, Problem, Unavailable, Uncertain
from holdfast.storage.sql.sqlite_file import SqliteFile, mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg
    from sqlalchemy import URL, Connection, Dialect, Engine, PoolProxiedConnection, Select

_BUSY_S = 5.0
"""Seconds to wait for another process's write, or for a free connection."""
_AGAIN_S = 0.01
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
"""Without these a lost server blocks callers for a quarter of an hour; parameters of the URL take precedence."""
_ABANDONED_S = 15
"""Milliseconds after which a server ends the transaction of a lost writer, which frees its locks."""

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
    """Parse the address of a database: a file's path, ``sqlite:///...`` or ``postgresql://...``.

    Raises:
        InvalidSetting: It is not a URL, or names a database that Holdfast does not support.
    """
    text = str(url_or_path)
    if "://" not in text:
        return make_url("sqlite://").set(database=str(Path(text).absolute()))
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        _refuse(f"{text.partition('://')[0]}://... is not a database URL")  # The rest may contain a password.
    driver = _DRIVERS.get(url.get_backend_name())
    if driver is None:
        _refuse(f"{url.get_backend_name()!r} is not a database Holdfast speaks")
    if driver == "sqlite" and url.database in {None, "", ":memory:"}:
        _refuse("a SQLite database needs a file")
    return url.set(drivername=driver)


def _refuse(message: str) -> NoReturn:
    raise InvalidSetting(problems=[Problem("database", message, ("a file's path", "sqlite:///", "postgresql://"))])


class Database:
    """One database with a pool for writing and a pool for reading.

    SQLite lets one connection write at a time. All writers of this process share one connection and queue for it
    fairly, instead of meeting inside SQLite, which polls.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        """Prepare both pools without connecting; a new SQLite file is made private.

        Raises:
            InvalidSetting: The URL cannot be used.
        """
        self.url = read_url(url_or_path)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._watching: PoolProxiedConnection | None = None
        self._mapped = ""
        self._file: SqliteFile | None = None
        self._marked = False
        if self.is_sqlite:
            file = Path(self.url.database or "")
            self._file = SqliteFile(file, busy_s=_BUSY_S)
            connect = self._file.connect
            self._writers = _sqlite_engine(connect, size=1, pragmas=_SQLITE_WRITER_PRAGMAS, begin="BEGIN IMMEDIATE")
            self._readers = _sqlite_engine(connect, size=_READERS, pragmas=_SQLITE_READER_PRAGMAS, begin="BEGIN")
            self._mapped = f"{os.path.realpath(file)}-shm"
        else:
            self._writers = _postgres_engine(self.url, size=_POSTGRES_WRITERS, isolation="READ COMMITTED")
            event.listen(self._writers, "connect", _end_when_abandoned)
            self._readers = _postgres_engine(self.url, size=_READERS, isolation="REPEATABLE READ")
            for pool in (self._writers, self._readers):
                event.listen(pool, "connect", _wait_as_long_as_sqlite)

    @property
    def dialect(self) -> Dialect:
        """The dialect to compile statements for."""
        return self._writers.dialect

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that commits at the end, or rolls back on any exception.

        Raises:
            Uncertain: The connection, or the log of a SQLite file, was lost during the commit, which may have happened.
            Unavailable, Internal: As ``translated`` says.
        """
        self._look_before_mapped_memory()
        if self._file is not None:
            self._file.require_same()
        with translated(), self._writers.connect() as connection, connection.begin() as transaction:
            if self._file is not None:
                self._file.know_log(connection)
                if not self._marked:
                    mark(connection)
            yield connection
            try:
                transaction.commit()
                self._marked = True
            except exc.DBAPIError as error:
                # SQLite and a server that refuses a COMMIT report it; a broken connection leaves it open.
                state = str(getattr(error.orig, "sqlstate", None))[:2]
                if isinstance(error.orig, sqlite3.Error) or state in _SQLSTATE_UNDONE:
                    raise
                message = f"the connection to the database was lost while it committed ({error.orig})"
                raise Uncertain(message, hint=_LOOK_FIRST) from error
        if self._file is not None:
            try:
                self._file.require_same()
            except Unavailable as error:
                raise Uncertain(error.message, hint=error.hint) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction on one snapshot.

        Raises:
            Unavailable, Internal: As ``translated`` says.
        """
        self._look_before_mapped_memory()
        with translated(), self._readers.connect() as connection:
            yield connection

    def data_version(self) -> int:
        """Return a number that changes with every commit to a SQLite file by any process; for one thread at a time.

        Raises:
            Unavailable, Internal: As ``translated`` says, or the file or its log was replaced.
        """
        self._look_before_mapped_memory()
        if self._file is not None:
            self._file.require_same()
        with translated():
            if self._watching is None:
                # One connection is kept open: numbers of different connections cannot be compared.
                self._watching = self._readers.raw_connection()
                self._watching.detach()
            with closing(self._watching.cursor()) as cursor:
                cursor.execute("PRAGMA data_version")
                [version] = cursor.fetchone() or (0,)
            return int(version)

    def _look_before_mapped_memory(self) -> None:
        """Make sure that the write-ahead index is writable: SQLite maps it, and dies if it cannot write.

        Raises:
            Unavailable: It is read-only; checked again after it exists, because it may have been created in between.
        """
        if (shm := self._mapped) and not (os.access(shm, os.W_OK) or not Path(shm).exists() or os.access(shm, os.W_OK)):
            message = f"{_SQLITE_PASSING[sqlite3.SQLITE_READONLY]} ({shm} cannot be written)"
            raise Unavailable(message, hint=_TRY_AGAIN)

    def text_of(self, statement: Select[Any]) -> str:
        """Render a frequent statement without parameters, for ``only_row``."""
        return str(statement.compile(dialect=self.dialect))

    def only_row(self, connection: Connection, text: str) -> Any:  # noqa: ANN401 - its columns differ
        """Return the only row of a frequent statement.

        It goes to SQLite's driver directly: SQLAlchemy's work around a statement takes seven times as long as this one.
        """
        if not self.is_sqlite:
            return connection.exec_driver_sql(text).one()
        with closing(connection.connection.cursor()) as cursor:
            return cursor.execute(text).fetchone()

    def close(self) -> None:
        """Close every connection; closing twice is fine."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
        self._writers.dispose()
        self._readers.dispose()


def _sqlite_engine(
    connect: Callable[[], sqlite3.Connection], *, size: int, pragmas: tuple[str, ...], begin: str
) -> Engine:
    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=size, max_overflow=0, pool_timeout=_BUSY_S
    )

    def connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # Holdfast begins transactions, not the driver.
        for pragma in (*_SQLITE_PRAGMAS, *pragmas):
            _set(connection, pragma)

    def begun(connection: Connection) -> None:
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _set(connection: sqlite3.Connection, pragma: str) -> None:
    """Set a pragma; two processes that switch a new file to write-ahead logging refuse each other without waiting."""
    until = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute(pragma).close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)
        else:
            return


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
    except (ModuleNotFoundError, exc.NoSuchModuleError) as error:
        problem = Problem(
            "database", "the PostgreSQL driver is not installed", hint="pip install 'holdfast-scheduler[postgres]'"
        )
        raise InvalidSetting(problems=[problem]) from error


def _end_when_abandoned(connection: psycopg.Connection, _: object) -> None:
    _set_on_server(connection, "idle_in_transaction_session_timeout", _ABANDONED_S)


def _wait_as_long_as_sqlite(connection: psycopg.Connection, _: object) -> None:
    _set_on_server(connection, "lock_timeout", _BUSY_S)


def _set_on_server(connection: psycopg.Connection, name: str, value_s: float) -> None:
    connection.autocommit = True
    connection.execute(f"SET {name} = {round(value_s * 1000)}")
    connection.autocommit = False


_TRY_AGAIN = "nothing was changed; it is safe to try again"
_LOOK_FIRST = (
    "it may have been done: look, before you ask again; a submission is safe to send again with its idempotency key"
)
_RESTORE = "stop Holdfast and put the last backup back: holdfast db restore FILE (what is there now is kept beside it)"
_SHOWN = 40
_PRIMARY = 0xFF
"""SQLite's extended result codes carry the primary code in the low byte."""

_SQLITE_PASSING = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: "the database is locked by another process",
    sqlite3.SQLITE_LOCKED: "the database is locked by another connection",
    sqlite3.SQLITE_IOERR: "the disk reports an input/output error",
    sqlite3.SQLITE_READONLY: "the database is read-only",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_NOMEM: "no memory is left for the database",
    sqlite3.SQLITE_PERM: "access to the database is denied",
}
_SQLITE_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SQLSTATE_PASSING = {
    "08": "the connection to the database was lost",
    "40": "another transaction came first",
    "53": "the database server has run out of disk, memory or connections",
    "55": "the database is locked by another session",
    "57": "the database server is shutting down or starting",
    "25": "the database accepts no writes right now",
}
_SQLSTATE_CANCELLED = "57014"
_SQLSTATE_BROKEN = {"XX", "58"}
_SQLSTATE_UNDONE = {"23", "25", "40"}
"""Codes by which a server reports that it did not commit."""


@contextmanager
def translated() -> Iterator[None]:
    """Translate the driver's exceptions into Holdfast's.

    Raises:
        Unavailable: The disk is full, or the database is locked, unreachable or busy.
        InvalidRequest: A text has characters that do not exist.
        Internal: The database is corrupt, or the statement is wrong.
    """
    try:
        yield
    except exc.TimeoutError as error:
        message = "the database is busy: no connection became free"
        raise Unavailable(message, hint=_TRY_AGAIN) from error
    except UnicodeEncodeError as error:
        message = f"{error.object[: error.end][-_SHOWN:]!r} is not valid Unicode text"
        raise InvalidRequest(message) from error
    except exc.DBAPIError as error:
        raise _explain(error) from error
    except sqlite3.Error as error:
        raise _explain_sqlite(error) from error


def _explain(error: exc.DBAPIError) -> HoldfastError:
    original = error.orig
    if isinstance(original, sqlite3.Error):
        return _explain_sqlite(original)
    state = getattr(original, "sqlstate", None)
    if state is None and isinstance(error, exc.OperationalError):
        return _passing("the database cannot be reached", original)
    if state == _SQLSTATE_CANCELLED:
        return _passing("the database server cancelled a statement: statement_timeout, or a person", original)
    kind = str(state)[:2]
    if kind in _SQLSTATE_BROKEN:
        return damaged(original)
    if kind in _SQLSTATE_PASSING:
        return _passing(_SQLSTATE_PASSING[kind], original)
    return _refused(original)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite found a damaged file, or one that is not a database."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE_BROKEN


def _explain_sqlite(original: sqlite3.Error) -> HoldfastError:
    if is_damage(original):
        return damaged(original)
    code = getattr(original, "sqlite_errorcode", 0) & _PRIMARY
    if code in _SQLITE_PASSING:
        return _passing(_SQLITE_PASSING[code], original)
    return _refused(original)


def _passing(what: str, original: BaseException | None) -> Unavailable:
    why = str(original).partition("\n")[0]  # A server repeats the statement in further lines.
    return Unavailable(f"{what} ({why})", hint=_TRY_AGAIN)


def damaged(what: object) -> Internal:
    """Return the error of a damaged database, with what to do."""
    return Internal(f"the database is damaged ({what})", hint=_RESTORE)


def _refused(original: BaseException | None) -> Internal:
    return Internal(f"the database refused a statement ({original})", hint="this is a defect of Holdfast; report it")
