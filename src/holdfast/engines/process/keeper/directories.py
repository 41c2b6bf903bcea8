"""Makes a run's directories just before its program starts; decides what a second dispatch must not find there."""

from __future__ import annotations

import os
from contextlib import suppress

from . import files
from .records import BEGAN, CHECKPOINTS, LOG, PROGRESS, TERMINATION, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Run

_OURS = 0o700


def prepare(run: Run) -> None:
    """Make a run's directory, what is in it, and its job's where it is the job's first.

    Raises:
        OSError: One cannot be made.
    """
    try:
        again = not _make(run.directory)
    except FileNotFoundError:
        job = os.path.dirname(run.directory)  # noqa: PTH120 - once per run: a Path costs as much as the call
        os.makedirs(f"{job}/{CHECKPOINTS}", _OURS, exist_ok=True)  # noqa: PTH103 - as above
        again = not _make(run.directory)
    if not run.order.get("cwd"):
        _make(run.path(WORK))
    if again:  # an earlier dispatch of the same attempt
        _note_beginning(run)
        for name in (TERMINATION, PROGRESS):
            with suppress(FileNotFoundError):
                os.unlink(run.path(name))  # noqa: PTH108 - as above


def _make(path: str) -> bool:
    try:
        os.mkdir(path, _OURS)  # noqa: PTH102 - as above
    except FileExistsError:
        return False
    return True


def _note_beginning(run: Run) -> None:
    """Write down where this program's part of the log begins, a line each; a log without it is better than no run."""
    with suppress(OSError):
        size = os.stat(run.path(LOG), follow_symlinks=False).st_size  # noqa: PTH116 - as above
        fd = files.open_plain(run.path(BEGAN), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, b"%d\n" % size)
        finally:
            os.close(fd)
