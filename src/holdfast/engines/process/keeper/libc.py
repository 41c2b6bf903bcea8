"""The two calls of the C library that Python does not offer; where there is no such call, nothing happens."""

from __future__ import annotations

try:
    import ctypes
except ImportError:  # a Python built without it
    ctypes = None  # type: ignore[assignment]  # -- the checker knows modules only as present

_PR_SET_CHILD_SUBREAPER = 36
_PUNCH_HOLE_KEEP_SIZE = 3


def adopt_orphans() -> None:
    """Become the parent of every orphan below, so that nothing a run leaves behind gets out of sight."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return


def punch_hole(fd: int, length: int) -> bool:
    """Free the first ``length`` bytes of a file without moving the rest; returns whether the file system could."""
    try:
        offsets = (ctypes.c_int64(0), ctypes.c_int64(length))
        return bool(ctypes.CDLL(None).fallocate(fd, _PUNCH_HOLE_KEEP_SIZE, *offsets) == 0)
    except (OSError, AttributeError):
        return False
