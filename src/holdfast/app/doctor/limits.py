"""Checks of what programs and the server may use: memory, processes, open files."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app import connections
from holdfast.app.data.datadir import DataDir
from holdfast.app.doctor.finding import Finding, ok, warn
from holdfast.client import Client
from holdfast.engines.process.places import MEMORY_LABEL, PIDS_LABEL
from holdfast.engines.process.shim import cgroups
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.app.settings import Settings

_FEW_PROCESSES = 4096
_WATCHED, _NONE = "rss", "none"
_DELEGATE = "run it as a service, which has its own control groups: holdfast service install"


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
    found = cgroups.find(str(settings.data), f"examined by {os.getpid()}", "auto")
    if found is None:
        return {MEMORY_LABEL: _WATCHED, PIDS_LABEL: _NONE}
    try:
        return {MEMORY_LABEL: found.name, PIDS_LABEL: found.name if found.counts_processes else _NONE}
    finally:
        found.close()


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
