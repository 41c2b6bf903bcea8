"""Records when a log grew: beside it, the size and time of each look that found it grown.

A program writes to its log itself, so lines have no times. The next best is the first look at which a line was
complete: looks are a tenth of a second apart while a program prints, and a second after a pause. The time recorded is
that of the log's last change, not of the look.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress

from .. import files

MOST_BYTES = 4 << 20
"""Bytes of disk that the times of one log may take, a quarter of a million looks; the newest half is always kept."""
_PAIR = 16
_NUMBERS = "Q"
NONE = array(_NUMBERS), array(_NUMBERS)


def note(path: str, size: int, at_ns: int, *, begin: bool = True) -> None:
    """Record a log's size at a time; missing times are better than no run.

    Args:
        path: The file of times.
        size: The log's size; one smaller than before begins anew, as the log does.
        at_ns: The log's last change, in nanoseconds since the epoch.
        begin: Whether to create the file: for a single look the log's own last change is enough.
    """
    with suppress(OSError):
        fd = files.open_plain(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if begin else 0))
        try:
            _append(fd, size, at_ns)
            allocated = os.fstat(fd).st_blocks * 512
        finally:
            os.close(fd)
        if allocated > MOST_BYTES:
            files.cap(path, MOST_BYTES)


def _append(fd: int, size: int, at_ns: int) -> None:
    end = os.fstat(fd).st_size
    if end % _PAIR:  # A full disk has cut off a pair.
        end -= end % _PAIR
        os.ftruncate(fd, end)
    noted = array(_NUMBERS, os.pread(fd, _PAIR, end - _PAIR)) if end else array(_NUMBERS, (0, 0))
    if size < noted[0]:
        os.ftruncate(fd, 0)
    if size != noted[0]:
        os.write(fd, array(_NUMBERS, (size, at_ns)).tobytes())


def read(path: str, owner: int | None) -> tuple[array[int], array[int]]:
    """Return the recorded sizes and times; a pair whose space was freed is zero.

    Raises:
        OSError: There is no such file of its owner's.
    """
    fd = files.open_plain(path, os.O_RDONLY, owner)
    try:
        begin = _first(fd)
        data = os.pread(fd, 2 * MOST_BYTES, begin)
    finally:
        os.close(fd)
    numbers = array(_NUMBERS, data[: len(data) // _PAIR * _PAIR])
    return numbers[::2], numbers[1::2]


def _first(fd: int) -> int:
    """Return the offset of the first pair that the disk still has."""
    try:
        begin = os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0
    return begin // _PAIR * _PAIR
