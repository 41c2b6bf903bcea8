"""Checks of the machine itself: Python, user, clock, GPUs, and the limits it sets to programs."""

from __future__ import annotations

import ctypes
import getpass
import os
import platform
import resource
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.app import connections, running
from holdfast.app.data.datadir import DataDir
from holdfast.app.doctor.finding import Finding, fail, ok, warn
from holdfast.client import Client
from holdfast.engines.devices.finding import find_devices
from holdfast.engines.process.places import MEMORY_LABEL, PIDS_LABEL
from holdfast.engines.process.shim import cgroups
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.app.settings import Settings

_NEWER_THAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""When this program was not written yet."""
_AHEAD_S = 60.0
_TIMEX_BYTES = 512
"""More than the kernel writes."""
_STATUS_AT = 5 * ctypes.sizeof(ctypes.c_long)
_UNSYNCHRONISED = 0x40
_FEW_PROCESSES = 4096
_WATCHED, _NONE = "rss", "none"
_DELEGATE = "run it as a service, which has its own control groups: holdfast service install"


def python(_: Settings) -> Finding:
    """Say what runs this, and whether the system is one that programs can be held on."""
    version = f"{platform.python_version()} ({sys.executable}), holdfast {__version__} on {platform.system()}"
    if sys.platform != "linux":
        return warn(version, "Holdfast is made for Linux: elsewhere there are no control groups, and programs escape")
    return ok(version)


def user(_: Settings) -> Finding:
    """Say who programs run as."""
    if os.geteuid() == 0:
        return warn("root: programs would run as root", "run Holdfast as a dedicated user")
    with suppress(KeyError, OSError):
        return ok(getpass.getuser())
    return ok(f"user number {os.geteuid()}")


def clock(settings: Settings) -> Finding:
    """Look whether the clock can be right: retries, deadlines and retention go by it."""
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
    """Ask the kernel whether a time service keeps its clock; ``None``: it does not tell."""
    with suppress(OSError, AttributeError):
        timex = ctypes.create_string_buffer(_TIMEX_BYTES)
        if ctypes.CDLL(None, use_errno=True).adjtimex(timex) >= 0:
            status = ctypes.c_int.from_buffer(timex, _STATUS_AT).value
            return not status & _UNSYNCHRONISED
    return None


def gpus(settings: Settings) -> Finding:
    """Compare the GPUs there are with those that are handed out."""
    devices, offered = find_devices(), running.devices(settings)
    summary = f"{len(devices)} found, {len(offered)} handed out"
    if settings.devices is None and len(offered) > len(devices):
        return warn(summary, "jobs would get devices that do not exist: HOLDFAST_GPUS")
    if len(devices) > len(offered):
        return warn(summary, f"to hand out all: HOLDFAST_GPUS={len(devices)}, or leave it out")
    bad = [f"{device.id}: {device.trouble}" for device in offered if device.trouble]
    return warn(summary, "; ".join(bad)) if bad else ok(summary)


def memory(settings: Settings) -> Finding:
    """Say who keeps memory limits: the kernel, or only an observer."""
    kept = _containment(settings)[MEMORY_LABEL]
    if kept == _WATCHED:
        shown = "no control groups can be created here: memory is watched, not limited"
        return warn(f"{shown}, and files in it (/dev/shm) are not counted", _DELEGATE)
    return ok(f"enforced by the kernel ({kept})")


def processes(settings: Settings) -> Finding:
    """Say whether the processes of a run are counted, and how many there may be in all."""
    counted = _containment(settings)[PIDS_LABEL] != _NONE
    most = min((limit for limit in (_user_limit(), _group_limit()) if limit is not None), default=None)
    shown = f"{'counted' if counted else 'not counted'} for each run, {most or 'no limit'} in all"
    if most is not None and most < _FEW_PROCESSES:
        return warn(shown, "raise it: ulimit -u, TasksMax= of the unit, or --pids-limit of the container")
    if settings.pids_limit and not counted:
        return warn(f"{shown}: HOLDFAST_PIDS_LIMIT has no effect", _DELEGATE)
    return ok(shown)


def open_files(settings: Settings) -> Finding:
    """Compare the files that may be open with the connections that are wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    most = connections.bounds(settings.connections, settings.request_timeout).most
    if most < settings.connections:
        raised = "" if hard == soft else f" (up to {'any number' if hard == resource.RLIM_INFINITY else hard})"
        advice = f"raise it: ulimit -n{raised}, or LimitNOFILE= of the unit"
        return warn(f"{shown}: {most} connections instead of {settings.connections}", advice)
    return ok(f"{shown}, enough for {most} connections")


def _containment(settings: Settings) -> Mapping[str, str]:
    """Ask the server how it keeps limits, else try what one could do that is started from here."""
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
    """Return how many processes this one's control group may have, where it says so."""
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
