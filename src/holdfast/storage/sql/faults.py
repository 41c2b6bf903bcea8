"""Translates driver errors: ``Unavailable`` for trouble that passes by itself, ``Internal`` for what needs a person.

The driver's own exception stays on ``__cause__``.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import exc

from holdfast.errors import HoldfastError, Internal, InvalidRequest, Unavailable, Uncertain

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRY_AGAIN = "nothing was changed; it is safe to try again"
_LOOK_FIRST = (
    "it may have been done: look, before you ask again; a submission is safe to send again with its idempotency key"
)
_RESTORE = "stop Holdfast and put the last backup back: holdfast db restore FILE (what is there now is kept beside it)"
_SHOWN = 40
_PRIMARY = 0xFF
"""SQLite's extended result codes carry the primary one in their low byte."""

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
_SQLSTATE_BROKEN = {"XX", "58"}
_SQLSTATE_UNDONE = {"23", "25", "40"}
"""Codes by which a server reports that it did not commit."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise Holdfast's error for whatever the driver raises inside.

    Raises:
        Unavailable: The disk is full, the database is locked, unreachable or busy.
        InvalidRequest: Text has characters that do not exist.
        Internal: The database is corrupt, or the statement was wrong.
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


@contextmanager
def committing() -> Iterator[None]:
    """Raise ``Uncertain`` for a COMMIT whose answer was lost; for use inside ``translated``.

    SQLite reports a failed COMMIT itself, and so does a server that refuses one; a broken connection does not.

    Raises:
        Uncertain: A database server may have committed, or not.
    """
    try:
        yield
    except exc.DBAPIError as error:
        state = str(getattr(error.orig, "sqlstate", None))[:2]
        if isinstance(error.orig, sqlite3.Error) or state in _SQLSTATE_UNDONE:
            raise
        message = f"the connection to the database was lost while it committed ({error.orig})"
        raise Uncertain(message, hint=_LOOK_FIRST) from error


def _explain(error: exc.DBAPIError) -> HoldfastError:
    original = error.orig
    if isinstance(original, sqlite3.Error):
        return _explain_sqlite(original)
    state = getattr(original, "sqlstate", None)
    if state is None and isinstance(error, exc.OperationalError):
        return _passing("the database cannot be reached", original)
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
    return Unavailable(f"{what} ({original})", hint=_TRY_AGAIN)


def damaged(what: object) -> Internal:
    """Say that the database is damaged, and what to do."""
    return Internal(f"the database is damaged ({what})", hint=_RESTORE)


def _refused(original: BaseException | None) -> Internal:
    return Internal(f"the database refused a statement ({original})", hint="this is a defect of Holdfast; report it")
