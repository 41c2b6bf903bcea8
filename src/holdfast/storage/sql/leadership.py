"""The lease on this database: who may write lifecycle state.

Taking the lease and committing both lock the same row, so a takeover waits for a commit that is under way, and a commit
after it is refused. Where machines share a database, only its clock counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, text, update

from holdfast.storage import refusals
from holdfast.storage.sql import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holdfast.storage.sql.engine import Database

_HELD = select(tables.leadership.c.epoch, tables.leadership.c.owner, tables.leadership.c.expires_at)
EPOCH = select(tables.leadership.c.epoch).with_for_update(read=True)
_PATIENCE = text("SET LOCAL lock_timeout = '5s'")
"""As long as SQLite waits: a lost session may hold the row for longer."""
_CLOCK = text("SELECT extract(epoch FROM clock_timestamp())::double precision")


class SqlLeadershipStore:
    """The lease's part of the store."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def lead(self, owner: str, ttl_s: float, now: float, *, heir_of: str | None = None) -> int:
        """Become, or stay, the one writer of lifecycle state for ``ttl_s``; a database server has its own ``now``.

        Raises:
            NotLeader: Another owner's lease still runs; the message names it.
        """
        with self._database.writing() as connection:
            if not self._database.is_sqlite:
                connection.execute(_PATIENCE)
            epoch, holder, expires_at = connection.execute(_HELD.with_for_update()).one()
            if not self._database.is_sqlite:
                now = connection.execute(_CLOCK).scalar_one()  # after the wait for the row's lock
            refusals.require_free_lease(owner, heir_of=heir_of, holder=holder, left_s=expires_at - now)
            led: int = epoch + (holder != owner)
            connection.execute(update(tables.leadership).values(epoch=led, owner=owner, expires_at=now + ttl_s))
        return led


def require_epoch(connection: Connection, epoch: int | None, newest: str) -> None:
    """Make sure, until the transaction ends, that a writer's lease is still the newest, which a statement tells.

    Raises:
        Conflict: Another controller leads.
    """
    if epoch is not None:
        refusals.require_newest_epoch(epoch, newest=connection.exec_driver_sql(newest).scalar_one())
