"""Puts the parts together that answer: store and API application; those that run programs are in ``running``."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

from holdfast.api.rest.app import Probes, create_app
from holdfast.app.datadir import DataDir
from holdfast.app.ownership import require_database
from holdfast.app.time import SortableIds, SystemClock
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.files import ProcessLogs
from holdfast.storage.sql import open_store, upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from holdfast.app.readiness import Readiness
    from holdfast.app.settings import Settings
    from holdfast.ports.store import Store


def data_dir(settings: Settings) -> DataDir:
    """Open the data directory."""
    return DataDir(settings.data)


def database(settings: Settings, directory: DataDir) -> str:
    """Return where the database is, as a URL or a file's path."""
    return settings.database.get_secret_value() if settings.database else str(directory.database)


def store(settings: Settings, directory: DataDir) -> Store:
    """Open the database, at its newest schema.

    Raises:
        Conflict: The file of the database is gone, or the schema is not the one this version needs.
        EngineError: The schema is an older one, and programs are held by another version, which needs it.
        Unavailable, Internal: The database cannot be opened, or is damaged.
    """
    place = database(settings, directory)
    file = upkeep.file_of(place)
    if file is not None:
        require_database(file)
    return open_store(place, before_upgrade=lambda: require_compatible(directory.runs))


def application(
    directory: DataDir,
    opened: Store,
    *,
    token: str | None,
    readiness: Readiness | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Make the API application over an open store.

    Args:
        directory: Where runs and their logs are.
        opened: The store.
        token: What callers must show.
        readiness: Shows the parts of a server; without it, all callers are this process.
        stopping: Says that the server is about to stop.
    """
    if readiness is None:
        probes = Probes(actor=f"user:{_user()}", make_room=directory.reserve.give_up)
    else:
        registry = readiness.telemetry.registry
        probes = Probes(registry, readiness.ready, readiness.refusal, stopping, directory.reserve.give_up)
    return create_app(
        store=opened,
        clock=SystemClock(),
        ids=SortableIds(),
        logs=ProcessLogs(directory.runs),
        token=token,
        probes=probes,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return str(os.getuid())
