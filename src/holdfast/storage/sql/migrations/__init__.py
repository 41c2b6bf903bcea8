"""Brings a database to the schema this version needs.

A new database is created from the tables, without a step. Steps are for existing databases, from ``BASE`` on. Alembic
runs them and is imported only if there is one to run, because every start of the command line comes through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, inspect, text

from holdfast.errors import Conflict, Unavailable
from holdfast.storage.sql import declared
from holdfast.storage.sql.engine import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection


HEAD = "0047"
"""The newest step in ``versions``, or ``BASE``."""
BASE = "0046"
"""Where the steps begin: a database of this schema opens as it is."""
PREVIOUS = "0046"
"""The schema before ``HEAD``, to which ``downgrade`` goes back."""
_MOST_TRIES = 6
"""How often to try a database that another process is upgrading; each try waits as long as any writer does."""
_LOCK = 0x_401D_FA57
"""Any number; every version of Holdfast must take the same PostgreSQL advisory lock."""
_VERSION_TABLE = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
"""The table as Alembic creates it."""


def upgrade(url_or_path: str | Path, *, before_upgrade: Callable[[], None] = lambda: None) -> None:
    """Bring the database to ``HEAD``; upgrading twice, or from two processes at once, is safe.

    Args:
        url_or_path: The database.
        before_upgrade: Called before an older schema is upgraded; may raise to leave it alone.

    Raises:
        Conflict: The database is from a newer Holdfast, or from before ``BASE``.
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        bring_up(database, before_upgrade)
    finally:
        database.close()


def downgrade(url_or_path: str | Path) -> None:
    """Bring a database back to the schema before ``HEAD``, without what only ``HEAD`` knows; twice changes nothing.

    Args:
        url_or_path: The database.

    Raises:
        Conflict: The database has neither of these schemas.
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        with database.writing() as connection:
            _lock(database, connection)
            revision = revision_of(connection)
            if revision == PREVIOUS:
                return
            if not _is_current(revision):
                raise Conflict(not_current(revision))
            from holdfast.storage.sql.migrations import steps  # noqa: PLC0415 - see the module's docstring

            steps.go_back(connection, PREVIOUS)
    finally:
        database.close()


def check(url_or_path: str | Path) -> None:
    """Make sure the database is at ``HEAD``.

    Raises:
        Conflict: It is older or newer.
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        check_current(database)
    finally:
        database.close()


def current(url_or_path: str | Path) -> str | None:
    """Return the schema of a database, or ``None`` if it has none of Holdfast's.

    Raises:
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        with database.reading() as connection:
            return revision_of(connection)
    finally:
        database.close()


def bring_up(database: Database, before_upgrade: Callable[[], None] = lambda: None) -> None:
    """Bring an open database to ``HEAD``, in one transaction; see ``upgrade``."""
    with database.reading() as connection:
        revision = revision_of(connection)
    if _is_current(revision):
        return
    if revision is not None:
        before_upgrade()
    for left in reversed(range(_MOST_TRIES)):
        try:
            _bring_up(database)
        except Unavailable:
            if not left:
                raise
        else:
            return


def _bring_up(database: Database) -> None:
    with database.writing() as connection:
        _lock(database, connection)
        revision = revision_of(connection)
        if revision is None:
            _begin(connection)
        elif not _is_current(revision):
            from holdfast.storage.sql.migrations import steps  # noqa: PLC0415 - see the module's docstring

            steps.run(connection)


def _lock(database: Database, connection: Connection) -> None:
    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _begin(connection: Connection) -> None:
    """Create the first rows of a new database, and the partial indexes that the tables declare for SQLite only."""
    if connection.dialect.name == "postgresql":
        for index in (
            declared_index for table in declared.metadata.tables.values() for declared_index in table.indexes
        ):
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    declared.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(declared.settings).values(id=1, catalogue_version=0))
    connection.execute(insert(declared.leadership).values(id=1, epoch=0, owner="", expires_at=0.0))
    connection.execute(text(_VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def check_current(database: Database) -> None:
    """Make sure an open database is at ``HEAD``."""
    with database.reading() as connection:
        revision = revision_of(connection)
    if not _is_current(revision):
        raise Conflict(not_current(revision), hint="holdfast db upgrade")


def not_current(revision: str | None) -> str:
    """Say which schema a database has and which one is needed."""
    return f"the database has {f'schema {revision}' if revision else 'no schema yet'}; this version needs schema {HEAD}"


def refusal(revision: str | None) -> Conflict | None:
    """Return why this version cannot bring a database to ``HEAD``, or ``None`` if it can."""
    if revision is None or BASE <= revision <= HEAD:
        return None
    if revision > HEAD:
        message = f"a newer Holdfast made it: it has schema {revision}, and this version supports up to {HEAD}"
        return Conflict(message, hint="upgrade Holdfast, or restore the backup made before that upgrade")
    message = f"an older Holdfast made it: it has schema {revision}, and this version goes on from schema {BASE}"
    hint = "let the Holdfast that made it finish its work, then start this one in a new data directory or database"
    return Conflict(message, hint=hint)


def _is_current(revision: str | None) -> bool:
    why = refusal(revision)
    if why is not None:
        raise why
    return revision == HEAD


def revision_of(connection: Connection) -> str | None:
    """Return the schema of a database, or ``None`` if it has none of Holdfast's."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
