"""Wires the parts that run programs: ownership, leadership, the engine and their settings.

A command that only asks or submits needs none of them, and does not pay for their imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app import wiring
from holdfast.app.data.ownership import Ownership
from holdfast.app.data.token import kept_token
from holdfast.app.entrance.accounts import account
from holdfast.app.entrance.listening import kept_port
from holdfast.app.entrance.submitters import accounts_of
from holdfast.app.leadership import ALONE, Leadership, Terms, place_of, process_at, shared
from holdfast.app.time import SystemClock
from holdfast.controller.hopeless import HopelessAfter
from holdfast.controller.workloads.kinds import PodSettings
from holdfast.dialects.native.devices import read_devices
from holdfast.dialects.native.thresholds import reclaiming
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.domain.units import parse_memory
from holdfast.engines.devices.finding import find_devices, numbered
from holdfast.engines.devices.nvml import NvmlLook, has_driver
from holdfast.engines.devices.visible import AMD
from holdfast.engines.devices.watch import DeviceWatch
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.places import default_nodes
from holdfast.engines.process.pressure import PressureWatch
from holdfast.errors import InvalidSetting, Problem
from holdfast.ports.engine import NodeInfo
from holdfast.ports.store import RunsAs
from holdfast.service.access.tokens import RunTokens
from holdfast.storage.blobs import BlobFiles
from holdfast.storage.sql import upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.settings import Settings
    from holdfast.domain.devices import Device
    from holdfast.ports.store import ControllerStore

_KEY = "job-tokens"
"""The file with the key of the tokens of jobs."""


def own(settings: Settings, directory: DataDir, purpose: str) -> Ownership:
    """Take the data directory, and its database if that is a file, for this process alone.

    Raises:
        DataDirLocked: Another process has one of them.
        Conflict: The directory is a copy of one that is in use.
        Unavailable: They cannot be written.
    """
    return Ownership(directory, upkeep.file_of(wiring.database(settings, directory)), purpose)


def leadership(settings: Settings, directory: DataDir, ownership: Ownership, opened: ControllerStore) -> Leadership:
    """Return the lease of this process on its database, which is not taken yet.

    A process that holds the file of a database knows that every process that led it before is dead. On a database
    server that is known only of those with the same data directory.

    Raises:
        Refused, InvalidSetting: Programs cannot run as the settings say.
    """
    place = place_of(directory.path, ownership.word)
    heir_of = "" if ownership.has_database else place
    return Leadership(
        opened,
        process_at(place),
        SystemClock(),
        terms=terms(settings, ownership),
        heir_of=heir_of,
        # A copied directory gets a new word; with a database in a file, it has the files of jobs as well.
        place="" if ownership.has_database else ownership.word,
        runs_as=RunsAs(account() if accounts_of(settings) is None else None),
    )


def terms(settings: Settings, ownership: Ownership) -> Terms:
    """Return the terms of the lease; one on a database server protects programs, too."""
    return ALONE if ownership.has_database else shared(settings.lease)


def tokens(directory: DataDir) -> RunTokens:
    """Return the maker of the tokens of runs.

    Raises:
        Refused: The file of the key is another user's, or others can read or write it.
        Unavailable: It cannot be read or written.
    """
    return RunTokens(kept_token(directory, _KEY).encode())


def no_variables(_uid: str) -> Mapping[str, str]:
    """Return no variables, as without a server a run needs no token."""
    return {}


def engine(
    settings: Settings,
    directory: DataDir,
    ownership: Ownership,
    identity: Callable[[str], Mapping[str, str]],
) -> ProcessEngine:
    """Open the local-process engine; its programs end when no server has kept a lease for them.

    Args:
        settings: The settings.
        directory: Where programs run.
        ownership: The ownership of the directory.
        identity: Returns the variables with a run's own token, by the uid of the run.
    """
    offered = nodes(settings)
    opened = ProcessEngine(
        directory.runs,
        nodes=offered,
        log_limit=settings.log_limit,
        pids_limit=settings.pids_limit,
        lease_s=terms(settings, ownership).programs_s,
        held_port=kept_port(directory),
        secret=wiring.secret_files(settings, directory).value,
        blob=BlobFiles(directory.blobs).path,
        accounts=accounts_of(settings),
        identity=identity,
    )
    watch_pressure(opened, directory, settings)
    watch_devices(opened, [device for node in offered for device in node.devices], settings)
    return opened


def watch_pressure(opened: ProcessEngine, directory: DataDir, settings: Settings) -> None:
    """Report pressure on the machine to an engine while it is open, if there are thresholds for evictions."""
    if not settings.evict_below:
        return
    thresholds = reclaiming(settings.evict_below, settings.evict_reclaim)
    watch = PressureWatch(
        directory.runs,
        thresholds,
        observe=opened.observe,
        evicted=opened.take_evicted,
        clear=opened.clear,
        tell=opened.see_pressure,
    )
    opened.close_with(watch.close)


def watch_devices(opened: ProcessEngine, handed_out: Sequence[Device], settings: Settings) -> None:
    """Report the health of its GPUs to an engine while it is open; only NVIDIA's driver knows it."""
    watched = [device for device in handed_out if device.maker != AMD]
    if not watched or not has_driver():
        return
    watch = DeviceWatch(
        watched,
        NvmlLook(watched),
        foreign=opened.foreign if settings.avoid_busy_devices else lambda _: "",
        tell=opened.see_devices,
        every_s=settings.device_look,
    )
    opened.close_with(watch.close)


def pods(settings: Settings) -> PodSettings:
    """Return the backoff of jobs made of pods, whose base is also that of programs restarted in their pod."""
    usual = PodSettings()
    jobs, programs = usual.backoff, usual.crash_backoff
    base_s, most_s = settings.pod_backoff, settings.pod_backoff_max
    return PodSettings(
        backoff=evolve(jobs, initial_s=base_s, max_s=most_s),
        crash_backoff=evolve(programs, initial_s=base_s, max_s=min(most_s, programs.max_s or most_s)),
    )


def hopeless(settings: Settings) -> HopelessAfter:
    """Return how long jobs that no node could ever hold wait."""
    return HopelessAfter(settings.unschedulable_after, settings.door_unschedulable_after)


def nodes(settings: Settings) -> Sequence[NodeInfo]:
    """Return the nodes that this machine is divided into, with their capacity by the settings.

    Raises:
        InvalidSetting: The memory setting is not a size.
    """
    try:
        memory = parse_memory(settings.memory) if settings.memory is not None else None
    except ValueError as error:
        problem = Problem("HOLDFAST_MEMORY", str(error))
        raise InvalidSetting(problems=[problem]) from error
    cpu_m = None if settings.cpus is None else round(settings.cpus * 1000)
    share, devices_found = settings.nodes, devices(settings)
    offered = []
    for place, node in enumerate(default_nodes(share)):
        own = tuple(devices_found[place::share])
        capacity = Resources(
            cpu_m=node.capacity.cpu_m if cpu_m is None else cpu_m // share,
            memory=node.capacity.memory if memory is None else memory // share,
            gpu=len(own),
            named=settings.resources,
        )
        offered.append(NodeInfo(node.name, capacity, node.labels, own))
    return offered


def devices(settings: Settings) -> Sequence[Device]:
    """Return the GPUs to hand out: those that a file declares, or as many of those found as the settings say.

    Raises:
        InvalidSetting: The file cannot be read, or is not valid.
    """
    if settings.devices is not None:
        try:
            return read_devices(settings.devices.read_text(), name=str(settings.devices))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problem = Problem("HOLDFAST_DEVICES", f"cannot read {settings.devices}: {reason}")
            raise InvalidSetting(problems=[problem]) from error
    if settings.gpus == 0:
        return ()
    found_devices = find_devices()
    if settings.gpus is None or settings.gpus <= len(found_devices):
        return found_devices[: settings.gpus]
    return numbered(settings.gpus)


def refuse_loss(settings: Settings, directory: DataDir, ownership: Ownership) -> None:
    """Check that a database in a file is not older than what its last owner wrote.

    Raises:
        Internal: It is older.
        Unavailable: It cannot be read right now.
    """
    file = upkeep.file_of(wiring.database(settings, directory))
    if file is not None:
        upkeep.refuse_loss(file, epoch=ownership.epoch)
