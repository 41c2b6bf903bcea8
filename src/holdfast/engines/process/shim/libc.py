"""The calls of the C library that Python does not offer; where there is no such call, nothing happens."""

from __future__ import annotations

import errno
import os

try:
    import ctypes
except ImportError:  # a Python built without it
    ctypes = None  # type: ignore[assignment]  # -- the checker knows modules only as present

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PUNCH_HOLE_KEEP_SIZE = 3
_libc = getattr(ctypes, "CDLL", lambda _: None)(None)
"""Opened once: that costs every process that does it a hundred pages."""
_prctl = getattr(_libc, "prctl", None)


def adopt_orphans() -> None:
    """Become the parent of every orphan below, so that no process a run leaves behind is lost."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def gain_no_privileges() -> None:
    """Have no program that this process becomes or starts gain any by being setuid; raises OSError if it cannot be."""
    if _prctl is None or _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def set_name(name: str) -> None:
    """Name the calling process for ``ps`` and ``top``; at most 15 characters count."""
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(fd, name.encode())
        os.close(fd)
    except OSError:
        return


def punch_hole(fd: int, length: int) -> bool:
    """Free the first ``length`` bytes of a file without moving the rest; returns whether the file system could."""
    if _libc is None:
        return False
    try:
        offsets = (ctypes.c_int64(0), ctypes.c_int64(length))
        return bool(_libc.fallocate(fd, _PUNCH_HOLE_KEEP_SIZE, *offsets) == 0)
    except (OSError, AttributeError):
        return False
