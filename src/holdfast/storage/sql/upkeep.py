"""Maintenance of a whole database: checks it, copies it and restores a copy.

A restore replaces files in an order that leaves a usable database after a crash at any point.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, inspect, select, text

from holdfast.domain.record import Struct
from holdfast.errors import Conflict, Unavailable
from holdfast.storage.sql import declared, migrations
from holdfast.storage.sql.catalogue.reading import read_catalogue, read_pause
from holdfast.storage.sql.engine import Database, damaged, is_damage, read_url, translated
from holdfast.storage.sql.sqlite_file import BESIDE, connect
from holdfast.storage.sql.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.audit import Caller
    from holdfast.domain.placement.cordon import Pause

_COUNTED = (
    "jobs", "attempts", "runs", "history", "specs", "requests", "idempotency", "events", "audit", "workloads",
    "sessions", "kernels",
)  # fmt: skip
_PRIVATE = 0o600
_BUSY_S = 5.0
_LEASE = select(declared.leadership.c.owner, declared.leadership.c.expires_at)
_CLOCK = text("SELECT extract(epoch FROM clock_timestamp())::double precision")


class DatabaseHealth(Struct, frozen=True):
    """The result of examining a database."""

    place: str
    """The database's URL without its password."""
    revision: str | None
    """The revision of its schema; ``None`` if it has none."""
    problems: Sequence[str]
    """Its faults; empty for a sound database."""
    rows: Mapping[str, int]
    """Rows by table; empty if the schema is not current."""
    size: int
    """In bytes."""
    paused: str = ""
    """Why nothing is started, if it is paused."""


def shown(url_or_path: str | Path) -> str:
    """Return the URL of a database without its password."""
    return read_url(url_or_path).render_as_string(hide_password=True)


def file_of(url_or_path: str | Path) -> Path | None:
    """Return the file of a SQLite database, with links resolved; ``None`` for a database server."""
    url = read_url(url_or_path)
    return Path(url.database or "").resolve() if url.get_backend_name() == "sqlite" else None


def examine(url_or_path: str | Path) -> DatabaseHealth:
    """Examine a database in one transaction, changing nothing; damage is a result, not an error.

    Raises:
        Unavailable: It cannot be reached or read right now.
    """
    database = Database(url_or_path)
    try:
        with database.reading() as connection:
            revision = migrations.revision_of(connection)
            current = revision == migrations.HEAD
            problems = [
                *_schema_problems(revision),
                *(_damage(connection) if database.is_sqlite else ()),
                *(_unreadable_entries(connection) if current else ()),
            ]
            rows = {name: _count(connection, name) for name in _COUNTED if current}
            size = _size(connection, sqlite=database.is_sqlite)
            pause = read_pause(connection) if current else None
    finally:
        database.close()
    return DatabaseHealth(
        shown(url_or_path), revision, problems, rows, size, pause.in_words() if pause is not None else ""
    )


def leader(url_or_path: str | Path, now: float) -> tuple[str, float]:
    """Read who led the database last, and for how many seconds that lease still runs, negative once it is over.

    Args:
        url_or_path: The database.
        now: Seconds since the epoch; a database server uses its own clock.

    Raises:
        Unavailable: It cannot be reached or read right now.
    """
    database = Database(url_or_path)
    try:
        with database.reading() as connection:
            owner, expires_at = connection.execute(_LEASE).one()
            if not database.is_sqlite:
                now = connection.execute(_CLOCK).scalar_one()
    finally:
        database.close()
    return owner, expires_at - now


def refuse_damage(url_or_path: str | Path) -> None:
    """Make sure that a SQLite file is intact; about a second per million jobs. Servers check their own files.

    Raises:
        Internal: It is damaged, or no database.
        Unavailable: It cannot be read right now.
    """
    database = Database(url_or_path)
    try:
        if not database.is_sqlite:
            return
        with database.reading() as connection:
            verdict = connection.execute(text("PRAGMA quick_check(1)")).scalar_one()
    finally:
        database.close()
    if verdict != "ok":
        raise damaged(verdict)


def refuse_loss(file: Path, *, epoch: int) -> None:
    """Make sure that a SQLite file is not older than the last known epoch.

    Args:
        file: The database.
        epoch: The last known epoch.

    Raises:
        Internal: The file is older: later writes are lost, or it is another database.
        Unavailable: It cannot be read right now.
    """
    database = Database(file)
    try:
        with database.reading() as connection:
            has_table = inspect(connection).has_table(declared.leadership.name)
            newest = connection.execute(select(declared.leadership.c.epoch)).scalar() if has_table else None
    finally:
        database.close()
    if epoch > (newest or 0):
        what = f"{file} is older than what was written last, or its -wal file was deleted"
        raise damaged(what)


def _schema_problems(revision: str | None) -> list[str]:
    if revision == migrations.HEAD:
        return []
    if (why := migrations.refusal(revision)) is not None:
        return [f"{why.message}: {why.hint}"]
    return [f"{migrations.not_current(revision)}: holdfast db upgrade"]


def _damage(connection: Connection) -> list[str]:
    faults = [str(line) for line in connection.execute(text("PRAGMA integrity_check(20)")).scalars() if line != "ok"]
    for table, row, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        faults.append(f"row {row} of {table} belongs to a row of {parent} that is not there")
    return faults


def _unreadable_entries(connection: Connection) -> list[str]:
    return [f"{what}: {why}" for what, why in read_catalogue(connection).unreadable.items()]


def _count(connection: Connection, name: str) -> int:
    return int(connection.execute(select(func.count()).select_from(declared.metadata.tables[name])).scalar_one())


def _size(connection: Connection, *, sqlite: bool) -> int:
    query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    return int(
        connection.execute(text(query if sqlite else "SELECT pg_database_size(current_database())")).scalar_one()
    )


def back_up(url_or_path: str | Path, target: Path) -> int:
    """Copy a SQLite database as of one instant, even while others write. Returns the copy's size in bytes.

    Raises:
        Conflict: The target exists, or the database is on a server, which has its own tools.
        Unavailable, Internal: As ``translated`` says; no target is left.
    """
    source = _file_of(url_or_path, f"pg_dump --format=custom --file={target} URL")
    if target.exists():
        message = f"{target} is there already"
        raise Conflict(message, hint="name a file that is not")
    with _aside(target) as fresh:
        _copy(source, fresh)
        fresh.replace(target)
    return target.stat().st_size


def restore(url_or_path: str | Path, source: Path, *, pause: Pause | None, caller: Caller) -> Path | None:
    """Replace a SQLite database that nobody has open by a backup, which may have any schema since the steps begin.

    Args:
        url_or_path: The database.
        source: The backup.
        pause: Why nothing is to start until somebody resumes it; ``None`` to start waiting work at once.
        caller: Who restores it.

    Returns:
        Where the replaced database is now; ``None`` if there was none.

    Raises:
        Conflict: The backup is damaged, too new or too old, or the database is on a server.
        Unavailable, Internal: As ``translated`` says; the present database stays.
    """
    place = _file_of(url_or_path, f"pg_restore --clean --if-exists --dbname=URL {source}, then: holdfast db pause")
    if not source.is_file():
        message = f"{source} does not exist"
        raise Unavailable(message)
    with _aside(place) as fresh:
        _copy(source, fresh)
        _pause(fresh, pause, caller)
        _free_lease(fresh)
        kept = _set_aside(place)
        fresh.replace(place)
    return kept


def _file_of(url_or_path: str | Path, command: str) -> Path:
    url = read_url(url_or_path)
    if url.get_backend_name() != "sqlite":
        message = f"{shown(url_or_path)} is on a database server, which has tools of its own for this"
        raise Conflict(message, hint=command.replace("URL", f"'{url.set(drivername='postgresql', password=None)}'"))
    return Path(url.database or "")


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """Create a private file beside the target; it is deleted unless it was moved."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    with translated():
        try:
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
            yield fresh
        except OSError as error:
            message = f"cannot write {target}: {error.strerror}"
            raise Unavailable(message) from error
        finally:
            for name in ("", *BESIDE):
                Path(f"{fresh}{name}").unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy by SQLite's backup in one read of the source, and make sure that the copy is sound."""
    try:
        fault = _copied(source, target)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        fault = str(error)
    if fault:
        message = f"{source} is damaged: {fault}"
        raise Conflict(message, hint="use another backup; `holdfast db check` looks at the database in use")
    with target.open("rb+") as file:
        os.fsync(file.fileno())


def _copied(source: Path, target: Path) -> str:
    """Copy; returns the copy's faults, or an empty text."""
    with closing(connect(source, busy_s=_BUSY_S)) as old, closing(_alone(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")
        return "; ".join(line for (line,) in new.execute("PRAGMA quick_check(3)") if line != "ok")


def _alone(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _pause(path: Path, pause: Pause | None, caller: Caller) -> None:
    """Upgrade a restored database and set its pause, whatever it was in the backup."""
    with closing(open_store(path)) as store:
        if pause is None:
            store.delete_pause(caller=caller)
        else:
            store.put_pause(pause, caller=caller)


def _free_lease(path: Path) -> None:
    """Release the lease of a restored database, so that any server can lead."""
    with closing(_alone(path)) as connection:
        connection.execute("UPDATE leadership SET expires_at = 0")
        connection.execute("PRAGMA journal_mode=DELETE")


def _set_aside(place: Path) -> Path | None:
    """Keep the present database under another name as well; it stays under its own until the new one replaces it.

    The files beside it are moved even if the database itself is gone: SQLite would apply its log to the new one.
    """
    number = 1
    while any(Path(f"{place}.replaced-{number}{name}").exists() for name in ("", *BESIDE)):
        number += 1
    kept = place.with_name(f"{place.name}.replaced-{number}")
    exists = place.exists()
    if exists:
        os.link(place, kept)
    for name in BESIDE:
        beside = Path(f"{place}{name}")
        if beside.exists():
            beside.rename(f"{kept}{name}")
    return kept if exists else None
