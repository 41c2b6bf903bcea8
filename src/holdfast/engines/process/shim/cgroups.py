"""Control groups, version 2 or 1: one for each supervisor, reused for each of its runs.

A supervisor is in its own group, so that its program is in it from the first instruction at no cost; creating and
removing a group per run costs more than the run.
"""

from __future__ import annotations

import fcntl
import os
import signal
import zlib
from contextlib import suppress
from pathlib import Path

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

RSS = "rss"
V1, V2 = "cgroup-v1", "cgroup-v2"
PIDS_LIMIT = 8192
"""Processes and threads of a run with a version 2 group, where no other limit is set; costs nothing more."""
OWN_BYTES = 1 << 20
"""Bytes for the supervisor itself in its group, in addition to the run's limit."""
LEAST_BYTES = 1 << 20
"""The smallest limit: with less, the kernel kills the supervisor, whose memory a starting run shares."""
LEAST_FORKED_BYTES = 16 << 20
"""The same for a run whose first process is a copy of its supervisor until it becomes the program."""
_OURS = "holdfast-"
_LEFT_BYTES = 8 << 20
"""File cache of earlier runs, in bytes, beyond which it is freed first: it would count for the next run."""


class Cgroups:
    """The places for groups: the server's directory in each hierarchy."""

    def __init__(self, name: str, paths: tuple[str, ...]) -> None:
        """Open the directories, the one for memory first; raises OSError."""
        self.name = name
        self.paths = paths
        self.counts_processes = len(paths) > 1 if name == V1 else "pids" in _text(f"{paths[0]}/cgroup.controllers")
        self._held = [_hold(path) for path in paths]

    def group(self, number: int) -> Group:
        """Return the group of a supervisor, whether it exists or not."""
        return Group(self.name, tuple(f"{path}/s{number}" for path in self.paths))

    def numbers(self) -> list[int]:
        """List the supervisors that have a group."""
        return [int(folder.name[1:]) for folder in Path(self.paths[0]).iterdir() if folder.name[1:].isdecimal()]

    def clear(self, living: Container[int]) -> None:
        """Kill and remove what dead supervisors left."""
        for path in self.paths:
            for folder in Path(path).iterdir():
                number = folder.name[1:]
                if folder.is_dir() and not (number.isdecimal() and int(number) in living):
                    group = Group(self.name, (str(folder),))
                    group.kill()
                    group.remove()

    def close(self) -> None:
        """Remove our directories and those of killed shims, if they are empty."""
        for path, held in zip(self.paths, self._held, strict=True):
            os.close(held)
            for folder in Path(path).parent.glob(f"{_OURS}*"):
                _remove_abandoned(folder)


class Group:
    """One supervisor's group, in each hierarchy."""

    def __init__(self, name: str, paths: tuple[str, ...]) -> None:
        self.name = name
        self.paths = paths
        self._memory = 0
        self._pids = -1
        self._counted = False
        self._seen = (0, 0, 0, 0)

    def enter(self) -> None:
        """Create the group and move the calling process into it; raises OSError."""
        for path in self.paths:
            with suppress(FileExistsError):
                os.mkdir(path)  # noqa: PTH102 - a Path makes a process touch memory that it would share
            _write(f"{path}/cgroup.procs", str(os.getpid()))

    def prepare(self, memory: int, pids: int, *, forked: bool = False) -> bool:
        """Set its limits for a run; returns whether the memory limit is in force.

        Args:
            memory: Bytes; 0 for no limit.
            pids: Processes; 0 for no limit.
            forked: Whether the run's first process is a copy of its supervisor.
        """
        memory = max(memory, LEAST_FORKED_BYTES if forked else LEAST_BYTES) if memory else 0
        if memory and self._has_much():
            self._give_back_cache()
            if self._has_much() and not self._begin_anew():
                return False
        self._limit_pids(pids)
        limited = self._limit_memory(memory)
        oom_kills = peak = reached = 0
        if memory:
            _try_write(self._memory_file("peak"), "0")
            oom_kills, peak, reached = self._oom_kills(), _number(self._memory_file("peak")), self._times_reached()
        self._counted = pids > 0
        self._seen = (oom_kills, self._refused_forks() if pids else 0, peak, reached)
        return limited

    def _limit_pids(self, pids: int) -> None:
        if pids == self._pids:
            return
        self._pids = pids
        path = self.paths[-1]
        if self.name == V2:
            _try_write(f"{path}/pids.max", str((pids or PIDS_LIMIT) + 1))  # The supervisor is one of them.
        elif len(self.paths) > 1:
            _try_write(f"{path}/pids.max", str(pids + 1) if pids else "max")

    def _limit_memory(self, memory: int) -> bool:
        if memory == self._memory:
            return True
        path, self._memory = self.paths[0], -1
        try:
            if self.name == V2:
                _write(f"{path}/memory.max", str(memory + OWN_BYTES) if memory else "max")
                _try_write(f"{path}/memory.swap.max", "0" if memory else "max")
            else:
                _try_write(f"{path}/memory.memsw.limit_in_bytes", "-1")
                _write(f"{path}/memory.limit_in_bytes", str(memory + OWN_BYTES) if memory else "-1")
                if memory:
                    _try_write(f"{path}/memory.memsw.limit_in_bytes", str(memory + OWN_BYTES))
        except OSError:
            return False
        self._memory = memory
        return True

    def _has_much(self) -> bool:
        return _number(self._memory_file("current")) > _LEFT_BYTES

    def _begin_anew(self) -> bool:
        """Replace it by a new group: what an earlier run left in shared memory would count for the next one."""
        self.leave()
        self._memory, self._pids = 0, -1
        try:
            self.enter()
        except OSError:
            return False
        return True

    def _give_back_cache(self) -> None:
        path = self.paths[0]
        if self.name == V2:
            _try_write(f"{path}/memory.reclaim", str(_number(f"{path}/memory.current")))
        else:
            self._memory = -1
            _try_write(f"{path}/memory.limit_in_bytes", str(4 * OWN_BYTES))
            _try_write(f"{path}/memory.limit_in_bytes", "-1")

    def _memory_file(self, what: str) -> str:
        v1 = {"current": "memory.usage_in_bytes", "peak": "memory.max_usage_in_bytes"}
        return f"{self.paths[0]}/{v1[what] if self.name == V1 else f'memory.{what}'}"

    def oom_killed(self) -> bool:
        """Whether the kernel killed a process in it for memory since ``prepare``."""
        return self._oom_kills() > self._seen[0]

    def reached_memory_limit(self) -> bool:
        """Whether memory beyond its limit was requested since ``prepare``."""
        return self._memory > 0 and self._times_reached() > self._seen[3]

    def refused_fork(self) -> bool:
        """Whether the process limit refused a process since ``prepare``."""
        return self._counted and self._refused_forks() > self._seen[1]

    def peak(self) -> int:
        """Return the peak memory in bytes since ``prepare``; 0 if the peak may belong to an earlier run."""
        peak = _number(self._memory_file("peak"))
        return max(0, peak - OWN_BYTES) if self.name == V1 or peak > self._seen[2] else 0

    def _oom_kills(self) -> int:
        return _field(f"{self.paths[0]}/{'memory.events' if self.name == V2 else 'memory.oom_control'}", "oom_kill")

    def _times_reached(self) -> int:
        path = self.paths[0]
        return _number(f"{path}/memory.failcnt") if self.name == V1 else _field(f"{path}/memory.events", "max")

    def _refused_forks(self) -> int:
        return _field(f"{self.paths[-1]}/pids.events", "max")

    def members(self) -> list[int]:
        """List its processes except the calling one."""
        own = str(os.getpid())
        return [int(pid) for pid in _text(f"{self.paths[0]}/cgroup.procs").split() if pid != own]

    def kill(self) -> bool:
        """Kill every process in it except the calling one; returns whether there was any."""
        pids = self.members()
        if not pids:
            return False
        _try_write(f"{self.paths[-1]}/pids.max", "0")  # Keeps a dying group from growing faster than it is killed.
        self._pids = -1
        for pid in pids:
            processes.kill(pid, signal.SIGKILL)
        return True

    def remove(self) -> bool:
        """Remove the empty group; returns whether it is gone."""
        return not [path for path in self.paths if not _remove(path)]

    def leave(self) -> None:
        """Move the calling process out of it, into the parent group, and remove it."""
        for path in self.paths:
            _try_write(f"{path.rpartition('/')[0].rpartition('/')[0]}/cgroup.procs", str(os.getpid()))
        self.remove()


def find(directory: str, place: str, measure: str) -> Cgroups | None:
    """Find a way to use control groups.

    Args:
        directory: The directory of the runs.
        place: Tells the directory from a copy of it.
        measure: ``auto``, or ``rss`` for none.

    Returns:
        ``None`` if there is no way, or none is wanted.
    """
    if measure == RSS:
        return None
    name = f"{_OURS}{zlib.crc32(f'{directory} {place}'.encode()):08x}"
    for version, base in _candidates():
        path = f"{base}/{name}"
        try:
            Path(path).mkdir(exist_ok=True)
            return _opened(version, path, name)
        except OSError:
            _remove(path)
    return None


def _opened(version: str, path: str, name: str) -> Cgroups:
    """Make sure that limits can be written in our directory; raises OSError."""
    if version == V1:
        _write(f"{path}/memory.limit_in_bytes", "-1")
        pids = _pids_hierarchy(name)
        return Cgroups(V1, (path, pids) if pids else (path,))
    parent = path.rpartition("/")[0]
    if "memory" not in _text(f"{parent}/cgroup.subtree_control").split():
        _write(f"{parent}/cgroup.subtree_control", "+memory")
    _try_write(f"{parent}/cgroup.subtree_control", "+pids")
    _write(f"{path}/cgroup.subtree_control", "+memory")
    _try_write(f"{path}/cgroup.subtree_control", "+pids")
    return Cgroups(V2, (path,))


def _candidates() -> Iterator[tuple[str, str]]:
    """List directories to try: below our own cgroup, and for v2 beside it (a group with processes has no children)."""
    own = dict(_own_groups())
    for fields, kind, options in _mounts():
        if kind == "cgroup2":
            version, path = V2, own.get("", "/")
        elif kind == "cgroup" and "memory" in options.split(","):
            version, path = V1, own.get("memory", "/")
        else:
            continue
        base = _seen_from_here(fields, path)
        yield version, base
        if kind == "cgroup2" and base != fields[4]:
            yield version, base.rpartition("/")[0]


def _seen_from_here(fields: list[str], path: str) -> str:
    """Return a group's path below its mount, which may show only part of the hierarchy."""
    root, mount = fields[3], fields[4]
    inside = path[len(root.rstrip("/")) :] if path.startswith(root) else ""
    return mount + inside.rstrip("/")


def _pids_hierarchy(name: str) -> str:
    """Create our directory in version 1's hierarchy of process counts; empty if there is none that we may write."""
    own = dict(_own_groups())
    for fields, kind, options in _mounts():
        if kind == "cgroup" and "pids" in options.split(","):
            path = f"{_seen_from_here(fields, own.get('pids', '/'))}/{name}"
            try:
                Path(path).mkdir(exist_ok=True)
            except OSError:
                continue
            return path
    return ""


def _own_groups() -> Iterator[tuple[str, str]]:
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _mounts() -> Iterator[tuple[list[str], str, str]]:
    for line in _text("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        yield before.split(" "), kind, options


def _hold(path: str) -> int:
    """Keep other shims from removing a directory while this process lives; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def _remove_abandoned(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for folder in path.iterdir():
            if folder.is_dir():
                _remove(str(folder))  # This fails if a process is left in it.
        _remove(str(path))
    except OSError:
        return  # It belongs to another shim.
    finally:
        os.close(fd)


def _remove(path: str) -> bool:
    try:
        Path(path).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _text(path: str) -> str:
    return processes.content(path).decode()


def _number(path: str) -> int:
    return int(_text(path) or 0)


def _field(path: str, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _write(path: str, text: str) -> None:
    # Never creates the file: a missing control file means that the controller is missing.
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _try_write(path: str, text: str) -> bool:
    try:
        _write(path, text)
    except OSError:
        return False
    return True
