"""Checks whether this machine can run jobs, without changing anything, and says how to repair what is wrong."""

from __future__ import annotations

import ctypes
import getpass
import os
import platform
import resource
import stat
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.app import connections, running, whereabouts
from holdfast.app.data.datadir import DataDir
from holdfast.app.data.ownership import require_database
from holdfast.app.data.trust import trusted_folder
from holdfast.app.settings import read_settings
from holdfast.client import Client
from holdfast.client.errors import difference
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.units import format_memory
from holdfast.engines.devices.finding import find_devices
from holdfast.engines.process.places import MEMORY_LABEL, PIDS_LABEL
from holdfast.engines.process.shim import cgroups
from holdfast.errors import HoldfastError
from holdfast.storage.sql import upkeep
from holdfast.wire.problems import read_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.app.settings import Settings

_NEWER_THAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""A clock before this is wrong: this program was not written yet."""
_AHEAD_S = 60.0
_TIMEX_BYTES = 512
"""More than the kernel writes."""
_STATUS_AT = 5 * ctypes.sizeof(ctypes.c_long)
_UNSYNCHRONISED = 0x40
_FEW_PROCESSES = 4096
_WATCHED, _NONE = "rss", "none"
_DELEGATE = "run it as a service, which has its own control groups: holdfast service install"
_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs", "ncpfs"}
)
_REMOTE_PREFIX = "fuse."
_GONE = {"tmpfs": "is in memory: a reboot empties it", "ramfs": "is in memory: a reboot empties it"}
_GONE["overlay"] = "is a layer of a container: what is written there is lost with the container"
_LITTLE, _TOO_LITTLE = 1 << 30, 64 << 20
_FEW, _TOO_FEW = 10_000, 500
_MOVE = "set HOLDFAST_DATA to a directory on a local disk"
_MOST_WARNINGS = 5
_START = "start one: holdfast up --daemon, or holdfast service install"


class Verdict(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARN = "warn"
    """Jobs run, but with less protection, or not for long."""
    FAIL = "fail"
    """Jobs do not run, or results may be lost."""


class Finding(Struct, frozen=True):
    """The result of one check."""

    verdict: Verdict
    detail: str
    advice: str = ""
    """What to do about it; empty if nothing is needed."""
    name: str = ""

    def named(self, name: str) -> Finding:
        """Return it with the name of its check."""
        return evolve(self, name=name)


def ok(detail: str) -> Finding:
    """Report that nothing is wrong."""
    return Finding(Verdict.OK, detail)


def warn(detail: str, advice: str) -> Finding:
    """Report something to know."""
    return Finding(Verdict.WARN, detail, advice)


def fail(detail: str, advice: str) -> Finding:
    """Report something to repair."""
    return Finding(Verdict.FAIL, detail, advice)


def python(_: Settings) -> Finding:
    """Report the Python, and whether the system can contain programs."""
    version = f"{platform.python_version()} ({sys.executable}), holdfast {__version__} on {platform.system()}"
    if sys.platform != "linux":
        return warn(version, "Holdfast is made for Linux: elsewhere there are no control groups, programs may escape")
    return ok(version)


def user(_: Settings) -> Finding:
    """Report the user that programs run as."""
    if os.geteuid() == 0:
        return warn("root: programs would run as root", "run Holdfast as a dedicated user")
    with suppress(KeyError, OSError):
        return ok(getpass.getuser())
    return ok(f"user number {os.geteuid()}")


def clock(settings: Settings) -> Finding:
    """Check whether the clock can be right: retries, deadlines and retention depend on it."""
    now = time.time()
    shown = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    advice = "set it, and keep it right with a time service: timedatectl set-ntp true"
    if now < _NEWER_THAN:
        return fail(f"{shown} is in the past", advice)
    with suppress(OSError):
        ahead_s = (settings.data / "holdfast.db").stat().st_mtime - now
        if ahead_s > _AHEAD_S:
            return warn(f"{shown}, but the database was written {ahead_s:.0f} s later than that", advice)
    synchronised = _synchronised()
    if synchronised is None:
        return ok(f"{shown}; cannot tell whether it is synchronised")
    return ok(f"{shown}, synchronised") if synchronised else warn(f"{shown}, not synchronised", advice)


def _synchronised() -> bool | None:
    """Ask the kernel whether a time service keeps its clock right; ``None``: it does not say."""
    with suppress(OSError, AttributeError):
        timex = ctypes.create_string_buffer(_TIMEX_BYTES)
        if ctypes.CDLL(None, use_errno=True).adjtimex(timex) >= 0:
            status = ctypes.c_int.from_buffer(timex, _STATUS_AT).value
            return not status & _UNSYNCHRONISED
    return None


def gpus(settings: Settings) -> Finding:
    """Compare the GPUs found with those that are handed out."""
    devices, offered = find_devices(), running.devices(settings)
    summary = f"{len(devices)} found, {len(offered)} handed out"
    if settings.devices is None and len(offered) > len(devices):
        return warn(summary, "jobs would get devices that do not exist: HOLDFAST_GPUS")
    if len(devices) > len(offered):
        return warn(summary, f"to hand out all: HOLDFAST_GPUS={len(devices)}, or leave it out")
    bad = [f"{device.id}: {device.trouble}" for device in offered if device.trouble]
    return warn(summary, "; ".join(bad)) if bad else ok(summary)


def memory(settings: Settings) -> Finding:
    """Report whether the kernel enforces memory limits."""
    kept = _containment(settings)[MEMORY_LABEL]
    if kept == _WATCHED:
        shown = "no control groups can be created here: memory is watched, not limited"
        return warn(f"{shown}, and files in it (/dev/shm) are not counted", _DELEGATE)
    return ok(f"enforced by the kernel ({kept})")


def processes(settings: Settings) -> Finding:
    """Report whether the processes of a run are counted, and how many there may be in all."""
    counted = _containment(settings)[PIDS_LABEL] != _NONE
    most = min((limit for limit in (_user_limit(), _group_limit()) if limit is not None), default=None)
    shown = f"{'counted' if counted else 'not counted'} for each run, {most or 'no limit'} in all"
    if most is not None and most < _FEW_PROCESSES:
        return warn(shown, "raise it: ulimit -u, TasksMax= of the unit, or --pids-limit of the container")
    if settings.pids_limit and not counted:
        return warn(f"{shown}: HOLDFAST_PIDS_LIMIT has no effect", _DELEGATE)
    return ok(shown)


def open_files(settings: Settings) -> Finding:
    """Compare the limit of open files with the connections that the settings want."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    most = connections.bounds(settings.connections, settings.request_timeout).most
    if most < settings.connections:
        raised = "" if hard == soft else f" (up to {'any number' if hard == resource.RLIM_INFINITY else hard})"
        advice = f"raise it: ulimit -n{raised}, or LimitNOFILE= of the unit"
        return warn(f"{shown}: {most} connections instead of {settings.connections}", advice)
    return ok(f"{shown}, enough for {most} connections")


def _containment(settings: Settings) -> Mapping[str, str]:
    """Ask the server how it enforces limits; without one, try what a server started here could do."""
    server = None if settings.url or not settings.data.is_dir() else DataDir(settings.data).server()
    if server is not None:
        with suppress(HoldfastError, IndexError, KeyError), Client(server.url, server.token) as client:
            labels = client.nodes()[0].labels
            return {name: labels[name] for name in (MEMORY_LABEL, PIDS_LABEL)}
    groups = cgroups.find(str(settings.data), f"examined by {os.getpid()}", "auto")
    if groups is None:
        return {MEMORY_LABEL: _WATCHED, PIDS_LABEL: _NONE}
    try:
        return {MEMORY_LABEL: groups.name, PIDS_LABEL: groups.name if groups.counts_processes else _NONE}
    finally:
        groups.close()


def _user_limit() -> int | None:
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return None if soft == resource.RLIM_INFINITY or os.geteuid() == 0 else soft


def _group_limit() -> int | None:
    """Return how many processes the control group of this process may have, if it is limited."""
    for file in _files_of_limits():
        with suppress(OSError, ValueError):
            return int(file.read_text())
    return None


def _files_of_limits() -> Iterator[Path]:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "pids" in controllers.split(","):
                yield Path("/sys/fs/cgroup", "pids" if controllers else "", path.lstrip("/"), "pids.max")


def directory(settings: Settings) -> Finding:
    """Check that the data directory can be used, and only by its owner, without creating it.

    Raises:
        Refused: It is another user's, or others can write there.
    """
    path = settings.data
    if not path.exists():
        above = _existing(path)
        if os.access(above, os.W_OK | os.X_OK) and above.is_dir():
            return ok(f"{path} will be created when it is first needed")
        return fail(f"{path} does not exist and cannot be created", f"mkdir {path}, or set HOLDFAST_DATA")
    try:
        with trusted_folder(path), tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as error:
        return fail(f"{path} cannot be written: {error.strerror}", "set HOLDFAST_DATA to a directory you can write")
    status = path.stat()
    if status.st_uid != os.geteuid():
        return warn(f"{path} belongs to another user", "run Holdfast as that user, or set HOLDFAST_DATA")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) & ~(stat.S_IXGRP | stat.S_IXOTH):
        return warn(f"{path} is accessible to other users, including every log in it", f"chmod 700 {path}")
    return ok(f"{path}, writable and private")


def file_system(settings: Settings) -> Finding:
    """Check that commits to the data directory last."""
    database = settings.database.get_secret_value() if settings.database else settings.data / "holdfast.db"
    return of_kind(_kind_of(_existing(settings.data)), has_database=upkeep.file_of(database) is not None)


def of_kind(kind: str, *, has_database: bool) -> Finding:
    """Judge a kind of file system, empty if unknown, by whether it holds the database."""
    if kind in _REMOTE or kind.startswith(_REMOTE_PREFIX):
        problem = f"{kind} is not local: locks and SQLite's write-ahead log need a disk of this machine"
        return fail(problem, _MOVE) if has_database else warn(problem, _MOVE)
    if kind in _GONE:
        return warn(f"{kind} {_GONE[kind]}", f"{_MOVE}, or a volume")
    return ok(f"{kind}, local" if kind else "of unknown kind")


def disk(settings: Settings) -> Finding:
    """Check the free space."""
    status = os.statvfs(_existing(settings.data))
    free, files = status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None
    shown = f"{format_memory(free)} free" + ("" if files is None else f", {files:,} inodes free")
    advice = (
        "free some space, or delete old jobs: holdfast db prune --older-than 30d"
        " (HOLDFAST_RETENTION does it automatically)"
    )
    if free < _TOO_LITTLE or (files is not None and files < _TOO_FEW):
        return fail(shown, advice)
    if free < _LITTLE or (files is not None and files < _FEW):
        return warn(shown, advice)
    return ok(shown)


def _existing(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    here = path.absolute()
    while not here.exists():
        here = here.parent
    return here


def _kind_of(path: Path) -> str:
    """Return the kind of file system a path is on, empty if unknown."""
    best, kind, here = "", "", os.path.realpath(path)
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split(" ")[4].encode().decode("unicode_escape")
        if len(mount) >= len(best) and os.path.commonpath([mount, here]) == mount:
            best, kind = mount, after.split(" ")[0]
    return kind


def database(settings: Settings) -> Finding:
    """Check that the database can be read and is sound.

    Raises:
        HoldfastError: It is gone, or cannot be reached.
    """
    place = settings.database.get_secret_value() if settings.database else settings.data / "holdfast.db"
    file = upkeep.file_of(place)
    if file is not None:
        require_database(file)
        if not file.exists():
            return ok(f"{file} will be created when it is first needed")
    health = upkeep.examine(place)
    if health.problems:
        return fail(f"{health.place}: {'; '.join(health.problems)}", "for details: holdfast db check")
    message = f"{health.place}, {health.rows['jobs']:,} jobs, sound"
    return warn(f"{message}; {health.paused}", "to resume: holdfast db resume") if health.paused else ok(message)


def server(settings: Settings) -> Finding:
    """Check that a server runs and can work.

    Raises:
        HoldfastError: It cannot work, and says why.
    """
    place = whereabouts.find(settings)
    if place is None:
        return warn("none is running: jobs run only while a command waits for them", _START)
    with Client(place.url, place.token) as client:
        return _finding_about(client, f"{place.url}, process {place.pid}" if place.pid else place.url)


def catalogue(settings: Settings) -> Finding:
    """Check that entries and settings name only what exists, and are not dubious otherwise."""
    try:
        place = whereabouts.find(settings)
        if place is None:
            return ok("is checked while a server runs")
        with Client(place.url, place.token) as client:
            warnings = list(_catalogue_warnings(client))
    except HoldfastError as error:
        return warn(f"cannot be checked: {error.message}", "see the finding about the server")
    if not warnings:
        return ok("without warnings")
    more = len(warnings) - _MOST_WARNINGS
    lines = [*warnings[:_MOST_WARNINGS], *([f"and {more} more"] if more > 0 else [])]
    return warn("; ".join(lines), "correct the manifest, then holdfast apply -f FILE")


def _catalogue_warnings(client: Client) -> Iterator[str]:
    for entry in client.settings().warnings:
        yield f"settings: {read_problem(entry)}"
    for info in ENTRIES.values():
        for view in () if info.private else client.entries(info).list():
            yield from (f"{info.noun} {view.name}: {read_problem(warning)}" for warning in view.warnings)


def _finding_about(client: Client, where: str) -> Finding:
    client.health()
    version = client.version()
    text = f"{where}, version {version.version} (api {version.api}.{version.revision})"
    apart = difference(version.revision)
    return warn(f"{text}, another version than this command", apart) if apart else ok(f"{text}, working")


_CHECKS: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
    ("python", python),
    ("user", user),
    ("clock", clock),
    ("gpus", gpus),
    ("memory limits", memory),
    ("processes", processes),
    ("open files", open_files),
    ("data directory", directory),
    ("file system", file_system),
    ("disk", disk),
    ("database", database),
    ("server", server),
    ("catalogue", catalogue),
)


def examine() -> Sequence[Finding]:
    """Run every check; an error in one is a finding, too.

    Raises:
        InvalidSetting: The settings cannot be read.
    """
    settings = read_settings()
    return [_run(name, check, settings) for name, check in _CHECKS]


def _run(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings).named(name)
    except HoldfastError as error:
        return Finding(Verdict.FAIL, error.message, error.hint or "").named(name)
    except OSError as error:
        return Finding(Verdict.WARN, f"cannot be checked: {error}").named(name)
