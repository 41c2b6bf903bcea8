"""When what a log has was written: beside it, of each look that found it grown, its size and its last change.

A program writes into its log itself, so no line has a time of its own. The time of the first look at which a line was
there whole is the next best: a look is a tenth of a second apart from the one before while a program prints, a second
after a pause, and what it notes is when the log was last written to, not when it was looked at.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress

from .. import files

MOST_BYTES = 4 << 20
"""Of disk that the times of one log may take, a quarter of a million looks; the newest half is always kept."""
_PAIR = 16
_NUMBERS = "Q"
NONE = array(_NUMBERS), array(_NUMBERS)


def note(path: str, size: int, at_ns: int, *, begin: bool = True) -> None:
    """Append that a log had a size at a time; times that cannot be written are better than no run.

    Args:
        path: Of the times.
        size: Of the log; one that is smaller than noted before begins anew, as the log does.
        at_ns: When the log was last written to, in nanoseconds since the epoch.
        begin: Whether to begin where there is no file yet: the log's own last change says the same of a single look.
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
    if end % _PAIR:  # a full disk took a part of one
        end -= end % _PAIR
        os.ftruncate(fd, end)
    noted = array(_NUMBERS, os.pread(fd, _PAIR, end - _PAIR)) if end else array(_NUMBERS, (0, 0))
    if size < noted[0]:
        os.ftruncate(fd, 0)
    if size != noted[0]:
        os.write(fd, array(_NUMBERS, (size, at_ns)).tobytes())


def read(path: str, owner: int | None) -> tuple[array[int], array[int]]:
    """Return the sizes that were noted, and when; of those whose place was given back both are 0.

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
    """Return where the first pair is that the disk still has."""
    try:
        begin = os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0
    return begin // _PAIR * _PAIR
