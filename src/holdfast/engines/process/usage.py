"""Measures how much memory and disk this machine has left, and which runs use how much of it, from /proc.

Without /proc nothing is known, and nothing is evicted.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.placement.pressure import Level
from holdfast.domain.shortage import Shortage
from holdfast.engines.process.shim.processes import content, everyone, exact_memory, memory_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_KIB = 1024
_BLOCK = 512
_UID_MARK, _FILES_MARK = b"HOLDFAST_ATTEMPT_UID=", b"HOLDFAST_TERMINATION_LOG="
_COUNTING_S = 0.5
"""Seconds per look for counting the memory of runs, which walks their page tables."""
_MOST_FILES = 200_000
"""Files of one run that are counted; if it has more, this number counts."""
_ELSEWHERE = ("nfs", "cifs", "smb", "fuse", "ceph", "9p", "lustre", "afs", "autofs")
"""File systems that are not asked for their free space: their servers may not answer."""
_NO_LIMIT = 1 << 60
_DISK = frozenset({Shortage.DISK, Shortage.INODES})


class MeasuredProcess(NamedTuple):
    """A process of a run."""

    pid: int
    uid: str
    """The run's uid."""


def memory_levels(meminfo: str = "/proc/meminfo", groups: Iterable[str] | None = None) -> list[Level]:
    """Return how much memory is left on the machine, and in each limited control group that contains this process.

    Args:
        meminfo: The machine's file.
        groups: Directories of groups; by default those of this process.
    """
    fields = dict(_fields(content(meminfo)))
    levels = []
    if "MemAvailable" in fields and "MemTotal" in fields:
        levels.append(Level(Shortage.MEMORY, fields["MemAvailable"] * _KIB, fields["MemTotal"] * _KIB))
    levels += filter(None, map(_of_group, own_groups() if groups is None else groups))
    return levels


def _fields(text: bytes) -> Iterator[tuple[str, int]]:
    for line in text.decode().splitlines():
        name, _, rest = line.partition(" ")
        number = rest.split()
        if number and number[0].isdigit():
            yield name.rstrip(":"), int(number[0])


def _of_group(path: str) -> Level | None:
    """Return how much of a group's limit is left, including file cache that can be dropped at once."""
    limit, used = _number(f"{path}/memory.max"), _number(f"{path}/memory.current")
    inactive = "inactive_file"
    if used is None:
        limit, used = _number(f"{path}/memory.limit_in_bytes"), _number(f"{path}/memory.usage_in_bytes")
        inactive = "total_inactive_file"
    if limit is None or used is None or limit >= _NO_LIMIT:
        return None
    dropped = dict(_fields(content(f"{path}/memory.stat"))).get(inactive, 0)
    return Level(Shortage.MEMORY, max(0, limit - max(0, used - dropped)), limit, path)


def _number(path: str) -> int | None:
    text = content(path).strip()
    return int(text) if text.isdigit() else None


def own_groups() -> list[str]:
    """List the directories of this process's control groups for memory, each with its ancestors."""
    own: dict[str, str] = {}
    for line in content("/proc/self/cgroup").decode().splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    groups = []
    for mount in _mounts():
        version_two = mount.kind == "cgroup2"
        if not (version_two or (mount.kind == "cgroup" and "memory" in mount.options.split(","))):
            continue
        path = own.get("" if version_two else "memory", "/")
        inside = path[len(mount.root.rstrip("/")) :] if path.startswith(mount.root) else ""
        while True:
            groups.append(mount.point + inside.rstrip("/"))
            if not inside.strip("/"):
                break
            inside = inside.rpartition("/")[0]
    return groups


class _Mount(NamedTuple):
    root: str
    point: str
    kind: str
    options: str


def _mounts() -> list[_Mount]:
    mounts = []
    for line in content("/proc/self/mountinfo").decode(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ", 2)
        mounts.append(_Mount(fields[3], fields[4].encode().decode("unicode_escape"), kind, options))
    return mounts


def disk_levels(directory: str, also: Iterable[str] = ()) -> list[Level]:
    """Return how much disk is left for a directory, and for others on other disks of this machine."""
    levels, seen = [], set[int]()
    for place in (directory, *also):
        with suppress(OSError):
            device = Path(place).stat().st_dev
            if device in seen:
                continue
            seen.add(device)
            status, where = os.statvfs(place), "" if place == directory else place
            levels.append(
                Level(Shortage.DISK, status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize, where)
            )
            if status.f_files:  # Some file systems create inodes as they need them.
                levels.append(Level(Shortage.INODES, status.f_favail, status.f_files, where))
    return levels


def programs(directory: str) -> list[MeasuredProcess]:
    """List the processes of runs with files below a directory; one without environment is its parent's run's."""
    uids: dict[int, str] = {}
    parents: dict[int, int] = {}
    for pid in everyone():
        environment = content(f"/proc/{pid}/environ").split(b"\0")
        files = next((item for item in environment if item.startswith(_FILES_MARK)), b"")
        if files.startswith(_FILES_MARK + os.fsencode(directory) + b"/"):
            uid = next((item for item in environment if item.startswith(_UID_MARK)), b"")
            uids[pid] = uid[len(_UID_MARK) :].decode(errors="replace")
        else:
            fields = content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            parents[pid] = int(fields[1]) if len(fields) > 1 else 0
    measured = [MeasuredProcess(pid, uid) for pid, uid in uids.items() if uid]
    for pid in parents:
        above, steps = pid, 0
        while above in parents and steps < len(parents):
            above, steps = parents[above], steps + 1
        if uids.get(above):
            measured.append(MeasuredProcess(pid, uids[above]))
    return measured


def working_directories(listed: Iterable[MeasuredProcess]) -> list[str]:
    """List the working directories of processes, each once; those not on a disk of this machine are left out."""
    paths: dict[str, None] = {}
    mounts = sorted(_mounts(), key=lambda mount: len(mount.point), reverse=True)
    for process in listed:
        with suppress(OSError):
            path = str(Path(f"/proc/{process.pid}/cwd").readlink())
            kind = next((place.kind for place in mounts if _is_below(path, place.point)), "")
            if not kind.startswith(_ELSEWHERE):
                paths[path] = None
    return list(paths)


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point if point.endswith("/") else f"{point}/")


def memory_used(listed: Iterable[MeasuredProcess]) -> dict[str, int]:
    """Sum the memory of runs in bytes, by uid: estimated for all, then counted for those that seem to use most."""
    members: dict[str, list[int]] = {}
    for process in listed:
        members.setdefault(process.uid, []).append(process.pid)
    estimates = {uid: _estimate(pids) for uid, pids in members.items()}
    several = [uid for uid in sorted(estimates, key=lambda uid: -estimates[uid]) if len(members[uid]) > 1]
    until = time.monotonic() + _COUNTING_S
    for uid in several:
        if time.monotonic() >= until:
            break
        estimates[uid] = min(estimates[uid], exact_memory(members[uid]))
    return estimates


def _estimate(pids: Iterable[int]) -> int:
    """Sum the private pages of processes, and the largest shared part once; a fork's pages count as private."""
    sizes = [memory_of(pid) for pid in pids]
    return sum(own for own, _ in sizes) + max(common for _, common in sizes)


def disk_used(listed: Iterable[MeasuredProcess], folders: Mapping[str, str], place: str) -> dict[str, tuple[int, int]]:
    """Sum what runs use on one disk, by uid, in bytes and files.

    This includes their folders and whatever they have open for writing: a program that writes to a disk that is filling
    up uses it, though the file stays when the program ends.

    Args:
        listed: The processes of runs.
        folders: The folder of each run.
        place: A directory on that disk.
    """
    try:
        device = Path(place).stat().st_dev
    except OSError:
        return {}
    seen: dict[str, dict[int, int]] = {uid: {} for uid in folders}
    for uid, folder in folders.items():
        _walk(folder, device, seen[uid])
    for process in listed:
        if process.uid in seen:
            _opened(process.pid, device, seen[process.uid])
    return {uid: (sum(files.values()) * _BLOCK, len(files)) for uid, files in seen.items()}


def _walk(folder: str, device: int, blocks: dict[int, int]) -> None:
    left = [folder]
    while left and len(blocks) < _MOST_FILES:
        for entry in _listed(left.pop()):
            status = _known(entry, follow=False)
            if status is not None and status.st_dev == device:
                blocks[status.st_ino] = status.st_blocks
                left += [entry.path] if stat.S_ISDIR(status.st_mode) else []


def _opened(pid: int, device: int, blocks: dict[int, int]) -> None:
    """Add the files that a process has open for writing, which may have no name any more."""
    for entry in _listed(f"/proc/{pid}/fd"):
        how, status = _known(entry, follow=False), _known(entry, follow=True)
        if how is None or status is None or not how.st_mode & stat.S_IWUSR:
            continue
        if status.st_dev == device and stat.S_ISREG(status.st_mode):
            blocks[status.st_ino] = status.st_blocks


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """List a folder; empty if it is gone or inaccessible."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _known(entry: os.DirEntry[str], *, follow: bool) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=follow)
    except OSError:
        return None


def used(directory: str, folders: Mapping[str, str], lacking: Mapping[Shortage, str]) -> dict[str, dict[Shortage, int]]:
    """Return what runs use of what is lacking, by uid.

    Args:
        directory: The directory of the runs' files.
        folders: The folder of each running run.
        lacking: What is lacking; for disk, with a directory on it.
    """
    listed = [program for program in programs(directory) if program.uid in folders]
    uses: dict[str, dict[Shortage, int]] = {uid: {} for uid in folders}
    if Shortage.MEMORY in lacking:
        for uid, size in memory_used(listed).items():
            uses[uid][Shortage.MEMORY] = size
    for of in _DISK.intersection(lacking):
        for uid, (size, count) in disk_used(listed, folders, lacking[of] or directory).items():
            uses[uid][of] = size if of is Shortage.DISK else count
    return uses
