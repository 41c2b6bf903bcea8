"""Enforces limits on memory and processes: by cgroup v2 or v1 where one can be made; decides which way is possible."""

from __future__ import annotations

import os
import signal
import zlib
from pathlib import Path

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Cgroups(Protocol):
        """One version of cgroups, with a directory of our own to make groups in."""

        name: str
        counts_processes: bool

        def create(self, uid: str, limit: int, pids: int) -> tuple[str, ...]:
            """Make groups that limit a run to bytes and processes, 0 for no limit; may raise OSError."""
            ...

        def oom_kills(self, group: str) -> int:
            """Count how often the kernel killed in it for memory."""
            ...

        def peak(self, group: str) -> int:
            """Return the most memory it ever used, 0 if not known."""
            ...

        def refused_forks(self, group: str) -> int:
            """Count how often it may not have had one more process."""
            ...

        def close(self) -> None:
            """Remove our directory."""
            ...


AUTO = "auto"
RSS = "rss"
PIDS_LIMIT = 8192
"""Processes and threads of a run with a version 2 group, which costs nothing more, where no other limit is set."""


def find_cgroups(directory: str, wanted: str) -> Cgroups | None:
    """Find a way to limit memory by cgroup, and clear what a dead keeper of this directory left there.

    Returns:
        ``None`` where there is none, or ``wanted`` says to watch instead.
    """
    if wanted == RSS:
        return None
    name = f"holdfast-{zlib.crc32(directory.encode()):08x}"
    for version, base in _candidates():
        path = f"{base}/{name}"
        try:
            _make_or_clear(path)
            return version(path)
        except OSError:
            _remove(path)
    return None


def _make_or_clear(path: str) -> None:
    if Path(path).is_dir():
        _clear(path)
    else:
        Path(path).mkdir()


def _candidates() -> Iterator[tuple[type[CgroupsV1 | CgroupsV2], str]]:
    """List directories to try: below our own cgroup, and for v2 beside it (a group with processes has no children)."""
    own = dict(_own_groups())
    for fields, kind, options in _mounts():
        version: type[CgroupsV1 | CgroupsV2]
        if kind == "cgroup2":
            version, path = CgroupsV2, own.get("", "/")
        elif kind == "cgroup" and "memory" in options.split(","):
            version, path = CgroupsV1, own.get("memory", "/")
        else:
            continue
        base = _seen_from_here(fields, path)
        yield version, base
        if kind == "cgroup2" and base != fields[4]:
            yield version, base.rpartition("/")[0]


def _seen_from_here(fields: list[str], path: str) -> str:
    """Return where a group is below its mount, which may show a part of the hierarchy only."""
    root, mount = fields[3], fields[4]
    inside = path[len(root.rstrip("/")) :] if path.startswith(root) else ""
    return mount + inside.rstrip("/")


def _pids_hierarchy(name: str) -> str:
    """Make our directory in version 1's hierarchy of process counts; empty where there is none we may write."""
    own = dict(_own_groups())
    for fields, kind, options in _mounts():
        if kind == "cgroup" and "pids" in options.split(","):
            path = f"{_seen_from_here(fields, own.get('pids', '/'))}/{name}"
            try:
                _make_or_clear(path)
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


class CgroupsV1:
    """The hierarchies of version 1: one for memory, and where it can be had one for process counts."""

    name = "cgroup-v1"

    def __init__(self, path: str) -> None:
        """Use a directory of ours; raises OSError where limits cannot be written."""
        self._path = path
        _write(f"{path}/memory.limit_in_bytes", "-1")
        self._pids = _pids_hierarchy(path.rpartition("/")[2])
        self.counts_processes = bool(self._pids)

    def create(self, uid: str, limit: int, pids: int) -> tuple[str, ...]:
        """Make a group for each limit; swap counts against that of memory where the kernel can."""
        groups = []
        if pids and self._pids:
            groups.append(f"{self._pids}/{uid}")
            _make_limited(groups[-1], "pids.max", pids)
        if limit:
            groups.append(f"{self._path}/{uid}")
            _make_limited(groups[-1], "memory.limit_in_bytes", limit)
            _try_write(f"{groups[-1]}/memory.memsw.limit_in_bytes", str(limit))
        return tuple(groups)

    def oom_kills(self, group: str) -> int:
        """Read the kernel's count."""
        return _field(f"{group}/memory.oom_control", "oom_kill")

    def peak(self, group: str) -> int:
        """Read the high-water mark."""
        return int(_text(f"{group}/memory.max_usage_in_bytes") or 0)

    def refused_forks(self, group: str) -> int:
        """Read the kernel's count."""
        return _field(f"{group}/pids.events", "max")

    def close(self) -> None:
        """Remove our directories."""
        _remove(self._path)
        if self._pids:
            _remove(self._pids)


class CgroupsV2:
    """The unified hierarchy."""

    name = "cgroup-v2"

    def __init__(self, path: str) -> None:
        """Use a directory of ours; raises OSError where the memory controller cannot be had."""
        self._path = path
        parent = path.rpartition("/")[0]
        if "memory" not in _text(f"{parent}/cgroup.subtree_control").split():
            _write(f"{parent}/cgroup.subtree_control", "+memory")
        _try_write(f"{parent}/cgroup.subtree_control", "+pids")
        _write(f"{path}/cgroup.subtree_control", "+memory")
        self.counts_processes = _try_write(f"{path}/cgroup.subtree_control", "+pids")

    def create(self, uid: str, limit: int, pids: int) -> tuple[str, ...]:
        """Make a group with the limits; on too much memory the kernel ends all of it at once, and swap is off."""
        group = f"{self._path}/{uid}"
        _make_limited(group, "memory.max", limit or "max")
        if limit:
            _try_write(f"{group}/memory.swap.max", "0")
            _try_write(f"{group}/memory.oom.group", "1")
        _try_write(f"{group}/pids.max", str(pids or PIDS_LIMIT))
        return (group,)

    def oom_kills(self, group: str) -> int:
        """Read the kernel's count."""
        return _field(f"{group}/memory.events", "oom_kill")

    def peak(self, group: str) -> int:
        """Read the high-water mark, where the kernel keeps one."""
        return int(_text(f"{group}/memory.peak") or 0)

    def refused_forks(self, group: str) -> int:
        """Read the kernel's count."""
        return _field(f"{group}/pids.events", "max")

    def close(self) -> None:
        """Remove our directory."""
        _remove(self._path)


def join(group: str) -> None:
    """Move the calling process into a group; raises OSError."""
    _write(f"{group}/cgroup.procs", str(os.getpid()))


def members(group: str) -> list[int]:
    """List a group's processes."""
    return [int(pid) for pid in _text(f"{group}/cgroup.procs").split()]


def kill_members(group: str) -> bool:
    """Kill every process in a group; returns whether there was any."""
    pids = members(group)
    if pids and not _try_write(f"{group}/cgroup.kill", "1"):
        for pid in pids:
            processes.kill(pid, signal.SIGKILL)
    return bool(pids)


def remove(group: str) -> bool:
    """Remove an empty group; returns whether it is gone."""
    return _remove(group)


def _clear(path: str) -> None:
    for group in Path(path).iterdir():
        if group.is_dir():
            kill_members(str(group))
            _remove(str(group))


def _remove(path: str) -> bool:
    try:
        Path(path).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _field(path: str, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)  # never creates: a missing control file means no such controller
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _make_limited(group: str, name: str, limit: int | str) -> None:
    Path(group).mkdir()
    try:
        _write(f"{group}/{name}", str(limit))
    except OSError:
        _remove(group)
        raise


def _try_write(path: str, text: str) -> bool:
    try:
        _write(path, text)
    except OSError:
        return False
    return True
