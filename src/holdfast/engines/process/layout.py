"""Where a run's files are; pure except for ``prepare``, which makes the directories, and ``log_start``, which looks.

<directory>/jobs/<job id>/checkpoints/              kept over attempts
<directory>/jobs/<job id>/<attempt>.<rank>/work/    where the program starts, unless the job says where
<directory>/jobs/<job id>/<attempt>.<rank>/{log,termination,progress}
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engines.process.keeper import files
from holdfast.engines.process.keeper.records import LOG, PROGRESS, TERMINATION, WORK
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

CHECKPOINTS = "checkpoints"


def log_path(directory: Path, job_id: str, attempt: int, rank: int) -> Path:
    """Return where the output of one rank of one attempt is, stdout and stderr as they came.

    Its beginning may have been given back to the disk, see ``log_start``.
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


def prepare(directory: Path, order: RunOrder) -> None:
    """Make a run's directories, cheaply; what fails here is tried again, and reported, by the keeper."""
    job = job_directory(directory, order.job_id)
    run = run_directory(directory, order.job_id, order.attempt, order.rank)
    with suppress(OSError):
        if _make(job):
            _make(f"{job}/{CHECKPOINTS}")
        again = not _make(run)
        if order.working_dir is None:
            _make(f"{run}/{WORK}")
        if again:  # an earlier dispatch of the same attempt
            _remove(f"{run}/{TERMINATION}")
            _remove(f"{run}/{PROGRESS}")


def _make(path: str) -> bool:
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102 - once per run: a Path costs as much as the call
    except FileExistsError:
        return False
    return True


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
