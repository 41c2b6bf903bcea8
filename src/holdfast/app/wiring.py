"""Puts the parts together: store, engine, API application. Every entry point starts here."""

from __future__ import annotations

import getpass
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.api.rest.app import Probes, create_app
from holdfast.app.datadir import DataDir
from holdfast.app.leadership import ALONE, Leadership, Terms, place_of, process_at, shared
from holdfast.app.ownership import Ownership, require_database
from holdfast.app.time import SortableIds, SystemClock
from holdfast.controller.sets.sets import PodSettings
from holdfast.domain.spec import Resources
from holdfast.domain.units import parse_memory
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.engine import ProcessEngine, default_nodes
from holdfast.engines.process.logs import ProcessLogs
from holdfast.errors import InvalidSetting, Problem
from holdfast.ports.engine import NodeInfo
from holdfast.storage.sql import open_store, upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import FastAPI

    from holdfast.app.readiness import Readiness
    from holdfast.app.settings import Settings
    from holdfast.ports.store import ControllerStore, Store


def data_dir(settings: Settings) -> DataDir:
    """Open the data directory."""
    return DataDir(settings.data)


def database(settings: Settings, directory: DataDir) -> str:
    """Return where the database is, as a URL or a file's path."""
    return settings.database.get_secret_value() if settings.database else str(directory.database)


def own(settings: Settings, directory: DataDir, purpose: str) -> Ownership:
    """Take the data directory, and the file of its database where it is one, for this process alone.

    Raises:
        DataDirLocked: Another process has one of them.
        Conflict: The directory is a copy of one that is in use.
        Unavailable: They cannot be written.
    """
    return Ownership(directory, upkeep.file_of(database(settings, directory)), purpose)


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


def leadership(settings: Settings, directory: DataDir, ownership: Ownership, opened: ControllerStore) -> Leadership:
    """Return the lease of this process on its database; not taken yet.

    Whoever holds the file of a database knows that every process which led it before is dead. On a database server
    that is known only of those on the same data directory.
    """
    place = place_of(directory.path, ownership.word)
    heir_of = "" if ownership.has_database else place
    return Leadership(opened, process_at(place), SystemClock(), terms=terms(settings, ownership), heir_of=heir_of)


def terms(settings: Settings, ownership: Ownership) -> Terms:
    """Return how long a lease is; one on a database server protects programs, too."""
    return ALONE if ownership.has_database else shared(settings.lease)


def engine(settings: Settings, directory: DataDir, ownership: Ownership) -> ProcessEngine:
    """Open the local-process engine; its programs end when no server has kept a lease for them."""
    return ProcessEngine(
        directory.runs,
        nodes=nodes(settings),
        log_limit=settings.log_limit,
        pids_limit=settings.pids_limit,
        lease_s=terms(settings, ownership).programs_s,
    )


def pods(settings: Settings) -> PodSettings:
    """Return how patient jobs made of pods are; the base is also that of programs that start again in their pod."""
    usual = PodSettings()
    jobs, programs = usual.backoff, usual.crash_backoff
    base_s, most_s = settings.pod_backoff, settings.pod_backoff_max
    return PodSettings(
        backoff=replace(jobs, initial_s=base_s, max_s=most_s),
        crash_backoff=replace(programs, initial_s=base_s, max_s=min(most_s, programs.max_s or most_s)),
    )


def nodes(settings: Settings) -> Sequence[NodeInfo]:
    """Return the nodes this machine is divided into, with the capacity the operator set.

    Raises:
        InvalidSetting: The memory setting is not a size.
    """
    try:
        memory = parse_memory(settings.memory) if settings.memory is not None else None
    except ValueError as error:
        problem = Problem("HOLDFAST_MEMORY", str(error))
        raise InvalidSetting(problems=[problem]) from error
    cpu_m = None if settings.cpus is None else round(settings.cpus * 1000)
    share = settings.nodes
    return [_offering(node, cpu_m, memory, settings.gpus, share) for node in default_nodes(share)]


def _offering(node: NodeInfo, cpu_m: int | None, memory: int | None, gpus: int, share: int) -> NodeInfo:
    capacity = Resources(
        cpu_m=node.capacity.cpu_m if cpu_m is None else cpu_m // share,
        memory=node.capacity.memory if memory is None else memory // share,
        gpu=gpus // share,
    )
    return NodeInfo(node.name, capacity, node.labels)


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
        probes = Probes(actor=f"user:{_user()}")
    else:
        probes = Probes(readiness.telemetry.registry, readiness.ready, readiness.refusal, stopping)
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
