"""Brings a database to the schema this version needs.

Alembic is imported only when there is something to do, because every start of the command line runs this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from holdfast.errors import Conflict, Unavailable
from holdfast.storage.sql.engine import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from holdfast.domain.access import Principal

HEAD = "0038"
"""The newest step in ``versions``."""
_MOST_TRIES = 6
"""How often a database that another process is upgrading is tried; each waits for as long as any writer does."""
_LOCK = 0x_401D_FA57
"""Any number, as long as every version of Holdfast takes the same PostgreSQL advisory lock."""


def upgrade(
    url_or_path: str | Path, *, before_upgrade: Callable[[], None] = lambda: None, owner: Principal | None = None
) -> None:
    """Bring the database to ``HEAD``; upgrading twice or from two processes at once is fine.

    Args:
        url_or_path: Where it is.
        before_upgrade: Called before an older schema is upgraded; may raise to leave it alone.
        owner: Whose the work is that was stored when nobody noted that.

    Raises:
        Conflict: A newer Holdfast made the database.
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        bring_up(database, before_upgrade, owner)
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
    """Return the schema a database has; ``None``: none of ours.

    Raises:
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        with database.reading() as connection:
            return revision_of(connection)
    finally:
        database.close()


def bring_up(
    database: Database, before_upgrade: Callable[[], None] = lambda: None, owner: Principal | None = None
) -> None:
    """Bring an open database to ``HEAD``, in one transaction; see ``upgrade``."""
    with database.reading() as connection:
        revision = revision_of(connection)
    if _is_current(revision):
        return
    if revision is not None:
        before_upgrade()
    for left in reversed(range(_MOST_TRIES)):
        try:
            _run_steps(database, owner)
        except Unavailable:
            if not left:
                raise
        else:
            return


def _run_steps(database: Database, owner: Principal | None) -> None:
    from holdfast.storage.sql.migrations import steps  # noqa: PLC0415 - see the module's docstring

    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if not _is_current(revision_of(connection)):
            steps.run(connection, owner)


def check_current(database: Database) -> None:
    """Make sure an open database is at ``HEAD``."""
    with database.reading() as connection:
        revision = revision_of(connection)
    if not _is_current(revision):
        raise Conflict(not_current(revision), hint="holdfast db upgrade")


def not_current(revision: str | None) -> str:
    """Say which schema a database has and which it should have."""
    return f"the database has {f'schema {revision}' if revision else 'no schema yet'}; this version needs schema {HEAD}"


def _is_current(revision: str | None) -> bool:
    if revision is not None and revision > HEAD:
        message = (
            f"a newer Holdfast made this database: it has schema {revision}, and this version supports up to {HEAD}"
        )
        raise Conflict(message, hint="upgrade Holdfast, or restore the backup made before that upgrade")
    return revision == HEAD


def revision_of(connection: Connection) -> str | None:
    """Return the schema a database has; ``None``: none of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
