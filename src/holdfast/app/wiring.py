"""Wires the store and the backend of the endpoints; ``running`` wires what runs programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.data.datadir import DataDir
from holdfast.app.data.ownership import require_database
from holdfast.app.entrance.accounts import account, is_group, named
from holdfast.app.time import SortableIds, SystemClock
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.files import ProcessLogs
from holdfast.service.operations.backend import Backend
from holdfast.storage.blobs import BlobFiles
from holdfast.storage.secrets import SecretFiles
from holdfast.storage.sql import open_store, upkeep

if TYPE_CHECKING:
    from holdfast.app.settings import Settings
    from holdfast.ports.notifications import Sender
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


def backend(settings: Settings, directory: DataDir, opened: Store) -> Backend:
    """Return the backend of the endpoints in a process without a server."""
    return Backend(
        opened,
        SystemClock(),
        SortableIds(),
        ProcessLogs(directory.runs),
        account(),
        directory.reserve.give_up,
        # Nodes reported earlier may not be those that run the jobs.
        nodes=tuple,
        metrics=lambda: _metrics(opened),
        sender=lambda: _sender(directory),
        secrets=secrets(settings, directory),
        blobs=blobs(settings, directory),
        account=named,
        is_group=is_group,
    )


def secrets(settings: Settings, directory: DataDir) -> SecretFiles | None:
    """Return the secrets of jobs; ``None`` if another machine may run the jobs, which would not find them."""
    if settings.secrets is None and upkeep.file_of(database(settings, directory)) is None:
        return None
    return secret_files(settings, directory)


def secret_files(settings: Settings, directory: DataDir) -> SecretFiles:
    """Return the folder of secrets; if programs run as their submitters, the modes of its files count, too."""
    return SecretFiles(settings.secrets or directory.secrets, by_accounts=settings.run_as == "submitter")


def blobs(settings: Settings, directory: DataDir) -> BlobFiles | None:
    """Return the inputs of jobs; ``None`` if another machine may run the jobs, which would not find them."""
    return BlobFiles(directory.blobs) if upkeep.file_of(database(settings, directory)) is not None else None


def _sender(directory: DataDir) -> Sender:
    from holdfast.app.loops.notifying import sender
    from holdfast.app.settings import read_settings

    return sender(read_settings(), directory)


def _metrics(opened: Store) -> bytes:
    from prometheus_client import CollectorRegistry

    from holdfast.api.http.serving.metrics import Metrics

    return Metrics(CollectorRegistry(), opened).text()
