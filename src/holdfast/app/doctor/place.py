"""Checks of where jobs are kept: the data directory, its file system and what is free of it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.data.trust import trusted_folder
from holdfast.app.doctor.finding import Finding, fail, ok, warn
from holdfast.domain.units import format_memory
from holdfast.storage.sql import upkeep

if TYPE_CHECKING:
    from holdfast.app.settings import Settings

_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs", "ncpfs"}
)
_REMOTE_PREFIX = "fuse."
_GONE = {"tmpfs": "is in memory: a reboot empties it", "ramfs": "is in memory: a reboot empties it"}
_GONE["overlay"] = "is a layer of a container: what is written there is lost with the container"
_LITTLE, _TOO_LITTLE = 1 << 30, 64 << 20
_FEW, _TOO_FEW = 10_000, 500
_MOVE = "set HOLDFAST_DATA to a directory on a local disk"


def directory(settings: Settings) -> Finding:
    """Look whether the data directory can be used, by its owner only; it is not made.

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
    """Look whether what is committed there stays."""
    database = settings.database.get_secret_value() if settings.database else settings.data / "holdfast.db"
    return of_kind(_kind_of(_existing(settings.data)), has_database=upkeep.file_of(database) is not None)


def of_kind(kind: str, *, has_database: bool) -> Finding:
    """Judge a kind of file system, empty where it is not known, by what is kept on it."""
    if kind in _REMOTE or kind.startswith(_REMOTE_PREFIX):
        problem = f"{kind} is not local: locks and SQLite's write-ahead log need a disk of this machine"
        return fail(problem, _MOVE) if has_database else warn(problem, _MOVE)
    if kind in _GONE:
        return warn(f"{kind} {_GONE[kind]}", f"{_MOVE}, or a volume")
    return ok(f"{kind}, local" if kind else "of unknown kind")


def disk(settings: Settings) -> Finding:
    """Look what is free."""
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
    """Return the path, or what is nearest above it."""
    here = path.absolute()
    while not here.exists():
        here = here.parent
    return here


def _kind_of(path: Path) -> str:
    """Return the kind of file system a path is on, empty where it is not known."""
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
