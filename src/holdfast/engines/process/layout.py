"""Where a run's files are, which its shim makes; pure except for ``log_start``, which looks.

<directory>/jobs/<job id>/checkpoints/              kept over attempts
<directory>/jobs/<job id>/<attempt>.<rank>/work/    where the program starts, unless the job says where
<directory>/jobs/<job id>/<attempt>.<rank>/{log,began,termination,progress}
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from holdfast.engines.process.shim import files
from holdfast.engines.process.shim.records import BEGAN, LOG
from holdfast.errors import InvalidRequest

_MOST_BEGINNINGS = 64 << 10
"""Bytes; some ten thousand programs. Of more, the newest are told apart."""


def log_path(directory: Path, job_id: str, attempt: int, rank: int) -> Path:
    """Return where the output of one rank of one attempt is, stdout and stderr as they came.

    Its beginning may have been freed, see ``log_start``.
    """
    return Path(run_directory(directory, job_id, attempt, rank), LOG)


def log_start(path: Path) -> int:
    """Return the offset of the first byte a log still has: a capped log keeps its offsets and loses its oldest part.

    Returns:
        0 for a whole log, and for one that does not exist.
    """
    try:
        fd = files.open_plain(os.fspath(path), os.O_RDONLY)
    except OSError:
        return 0
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError as error:
        return os.fstat(fd).st_size if error.errno == errno.ENXIO else 0
    finally:
        os.close(fd)


def log_beginnings(path: Path, size: int) -> tuple[int, ...]:
    """Return the offsets within a log of that size where programs after the first began, in order."""
    text = files.tail_text(os.fspath(path.with_name(BEGAN)), _MOST_BEGINNINGS)
    found = sorted({files.offset_in(line) for line in text.splitlines()})
    return tuple(offset for offset in found if 0 < offset <= size)


def job_directory(directory: Path, job_id: str) -> str:
    """Return the directory of a job.

    Raises:
        InvalidRequest: The id is not a file name.
    """
    if "/" in job_id or "\0" in job_id or job_id.startswith(".") or not job_id:
        msg = f"{job_id!r} is not a job id"
        raise InvalidRequest(msg)
    return f"{directory}/jobs/{job_id}"


def run_directory(directory: Path, job_id: str, attempt: int, rank: int) -> str:
    """Return the directory of one rank of one attempt."""
    return f"{job_directory(directory, job_id)}/{attempt}.{rank}"
