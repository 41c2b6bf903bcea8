"""Assembles the store on one SQL database from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.storage.sql import migrations
from holdfast.storage.sql.batch import Batches
from holdfast.storage.sql.catalogue.entries import SqlTokenStore
from holdfast.storage.sql.controller import SqlControllerStore
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.figures import SqlFigureStore
from holdfast.storage.sql.logs import SqlLogStore
from holdfast.storage.sql.notifications import SqlNotificationStore
from holdfast.storage.sql.overview import SqlOverviewStore
from holdfast.storage.sql.query import SqlQueryStore
from holdfast.storage.sql.retention import SqlRetentionStore
from holdfast.storage.sql.rows.endpoints import SqlEndpointStore
from holdfast.storage.sql.rows.sessions import SqlSessionStore
from holdfast.storage.sql.submission import SqlSubmissionStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SqlStore(
    SqlControllerStore,
    SqlSubmissionStore,
    SqlQueryStore,
    SqlTokenStore,
    SqlLogStore,
    SqlRetentionStore,
    SqlOverviewStore,
    SqlNotificationStore,
    SqlFigureStore,
    SqlEndpointStore,
    SqlSessionStore,
):
    """The whole ``Store`` port; safe to use from many threads."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Batches(database.dialect))

    def close(self) -> None:
        self._database.close()


def open_store(url_or_path: str | Path, *, before_upgrade: Callable[[], None] = lambda: None) -> SqlStore:
    """Open a database: a file's path, ``sqlite:///...`` or ``postgresql://...``.

    A SQLite file is created and upgraded as needed. A database server is only checked: several processes share it, and
    its operator decides when to upgrade.

    Args:
        url_or_path: The database.
        before_upgrade: Called before an older schema is upgraded; may raise to leave it alone.

    Raises:
        InvalidSetting: The URL cannot be used.
        Conflict: The schema is not the one that this version needs.
        Unavailable, Internal: As ``translated`` says.
    """
    database = Database(url_or_path)
    try:
        if database.is_sqlite:
            migrations.bring_up(database, before_upgrade)
        else:
            migrations.check_current(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)
