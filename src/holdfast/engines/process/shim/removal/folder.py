"""Deletes folders of runs in bounded time, with the rights of the account that owns them.

An account can put anything into its run's folder, even during the deletion: links, mounts, folders of other accounts
that it may move but not empty, and more and more files. Hence three rules.

- The deletion acts as the owner of the run's folder. That folder is in its job's, which only the server can change.
- It opens only folders of that owner, on the same file system, and never through a link.
- It ends when its time is over, and names what is left.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from .. import moment
from ..account import Account, acting
from ..records import WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OURS = 0o700
_AT_ONCE = 10_000
"""Entries of a folder held in memory."""
_TOKEN_BYTES = 8
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_LATER_S = 1.0
"""Seconds for each further job of an account, once a job of it took too long."""
_MOST_NAMED = 3


class _Late(Exception):
    """The time is over."""


def discard(jobs: str, job_ids: Sequence[str], limit_s: float) -> dict[str, str]:
    """Delete everything that jobs left.

    Each job's folder is moved away first, so that a run which takes over the checkpoints gets all of them or none.

    Args:
        jobs: The folder that contains the jobs' folders.
        job_ids: The jobs.
        limit_s: Seconds that the deletion of one job may take.

    Returns:
        Why something is left, for each job of which something is.
    """
    late: set[int] = set()
    kept: dict[str, str] = {}
    for job_id in job_ids:
        path, aside = f"{jobs}/{job_id}", f"{jobs}/.{job_id}"
        owner = _owner_of_runs(path, aside)
        try:
            left = _discard(path, aside, moment.monotonic() + (_LATER_S if owner in late else limit_s))
        except _Late:
            late.add(owner)
            left = ["it takes longer than it may at once"]
        except OSError as error:
            left = [str(error.strerror)]
        if left:
            more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
            kept[job_id] = f"cannot delete all of {aside}: {'; '.join(left[:_MOST_NAMED])}{more}"
    return kept


def _discard(path: str, aside: str, until: float) -> list[str]:
    left = _delete_job(aside, until)  # An interrupted deletion left these.
    if left:
        return left
    with suppress(FileNotFoundError):
        Path(path).rename(aside)
    return _delete_job(aside, until)


def set_aside(path: str) -> str:
    """Delete a work directory if it is empty, otherwise rename it, so that a later run in its place gets a new one.

    Returns:
        Its new path; empty if there is nothing to delete.
    """
    try:
        Path(path).rmdir()
    except FileNotFoundError:
        return ""
    except OSError:
        aside = f"{path}.{os.urandom(_TOKEN_BYTES).hex()}"
        Path(path).rename(aside)
        return aside
    return ""


def clear(path: str, limit_s: float) -> str:
    """Delete a part of a run's folder, such as its work directory; returns why some of it is left."""
    place, _, name = path.rpartition("/")
    try:
        with _opened(place) as run, acting(_account(run)):
            if name == WORK:
                name = set_aside(path).rpartition("/")[2]
            return _clear_folder(name, run, moment.monotonic() + limit_s) if name else ""
    except _Late:
        return f"it takes longer than {limit_s:g} s"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error.strerror)


def _clear_folder(name: str, run: int, until: float) -> str:
    """Delete a file or a folder within a run's folder; the content of nested folders never ends up beside it."""
    while not _is_deleted(name, run):
        with _Emptying(run, until).own(name) as folder:
            emptying = _Emptying(folder, until)
            emptying.empty()
        if emptying.left:
            return "; ".join(f"{name}/{why}" for why in emptying.left.values())
    return ""


def _owner_of_runs(*jobs: str) -> int:
    """Return the owner of a job's runs."""
    for job in jobs:
        with suppress(OSError), os.scandir(job) as entries:
            for entry in entries:
                return entry.stat(follow_symlinks=False).st_uid
    return os.geteuid()


def _delete_job(path: str, until: float) -> list[str]:
    """Delete the folder of a job, which belongs to the server; returns what is left of it."""
    left: list[str] = []
    try:
        with _opened(path, owner=os.geteuid()) as job:
            os.fchmod(job, _OURS)  # Keeps accounts from getting back into what is left.
            for name in _some(job, {}):
                left += _delete_run(job, name, until)
        if not left:
            Path(path).rmdir()
    except FileNotFoundError:
        return []
    return left


def _delete_run(job: int, name: str, until: float) -> list[str]:
    """Delete one folder of a job as the account that owns it."""
    try:
        with _opened(name, job) as run:
            emptying = _Emptying(run, until)
            with acting(_account(run)):
                emptying.empty()
        if not emptying.left:
            os.rmdir(name, dir_fd=job)
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            return [f"{name}: {error.strerror}"]
        os.unlink(name, dir_fd=job)
        return []
    return [f"{name}/{why}" for why in emptying.left.values()]


def _account(folder: int) -> Account | None:
    """Return the account that owns a folder; ``None`` if it is the server's own or cannot be assumed."""
    uid = os.fstat(folder).st_uid
    return Account("", uid) if uid != os.geteuid() == 0 else None


class _Emptying:
    """Empties a folder of what belongs to its owner.

    The content of a nested folder is moved up before that is deleted, so that any depth needs only three descriptors.
    """

    def __init__(self, top: int, until: float) -> None:
        facts = os.fstat(top)
        self._owner, self._device = facts.st_uid, facts.st_dev
        self._top = top
        self._until = until
        self.left: dict[str, str] = {}
        """What is left, by its name in the folder, and why."""

    def empty(self) -> None:
        """Delete everything in the folder."""
        _seal_not(self._top)
        while names := _some(self._top, self.left):
            for name in names:
                self.delete(name)

    def delete(self, name: str) -> None:
        """Delete one entry of the folder."""
        try:
            while self._has_time() and not _is_deleted(name, self._top):
                with self.own(name) as folder:
                    kept = self._take_out(folder)
                if kept:
                    self.left[name] = f"{name}/{kept}"
                    return
        except FileNotFoundError:
            return
        except OSError as error:
            self.left[name] = f"{name}: {error.strerror}"

    def _take_out(self, folder: int) -> str:
        """Delete the files of a folder, and move nested folders up; returns the first entry that is left, and why."""
        kept: dict[str, str] = {}
        while names := _some(folder, kept):
            for name in names:
                why = self._take_up(name, folder)
                if why:
                    kept[name] = why
        return next(iter(kept.values()), "")

    def _take_up(self, name: str, folder: int) -> str:
        """Delete one entry of a folder, or move it up; returns why it is left."""
        try:
            if self._has_time() and not _is_deleted(name, folder):
                with self.own(name, folder):  # Only a folder open to its owner can be moved.
                    os.rename(name, os.urandom(_TOKEN_BYTES).hex(), src_dir_fd=folder, dst_dir_fd=self._top)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{name}: {error.strerror}"
        return ""

    @contextmanager
    def own(self, name: str, folder: int | None = None) -> Iterator[int]:
        """Open a nested folder of the same owner on the same file system; raises OSError."""
        with _opened(name, self._top if folder is None else folder, self._owner) as opened:
            facts = os.fstat(opened)
            if facts.st_dev != self._device:
                raise OSError(errno.EXDEV, "another file system is mounted there")
            _seal_not(opened)
            yield opened

    def _has_time(self) -> bool:
        if moment.monotonic() < self._until:
            return True
        raise _Late


def _is_deleted(name: str, folder: int) -> bool:
    """Delete a file, or a folder if it is empty; returns whether that was possible.

    A folder is never opened before: here the kernel says whether something is mounted on it.
    """
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            return False
    return True


def _some(folder: int, but: dict[str, str]) -> list[str]:
    with os.scandir(folder) as entries:
        return list(islice((entry.name for entry in entries if entry.name not in but), _AT_ONCE))


def _seal_not(folder: int) -> None:
    """Undo what a program did to lock its own account out of a folder."""
    if os.fstat(folder).st_mode & _OURS != _OURS:
        os.fchmod(folder, _OURS)


@contextmanager
def _opened(name: str, folder: int | None = None, owner: int | None = None) -> Iterator[int]:
    """Open a folder, of the given owner only if there is one; raises OSError."""
    try:
        opened = os.open(name, _FLAGS, dir_fd=folder)
    except PermissionError:  # The account's own folder, locked.
        _require(owner, os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid)
        os.chmod(name, _OURS, dir_fd=folder)
        opened = os.open(name, _FLAGS, dir_fd=folder)
    try:
        _require(owner, os.fstat(opened).st_uid)
        yield opened
    finally:
        os.close(opened)


def _require(owner: int | None, uid: int) -> None:
    if owner not in {None, uid}:
        raise OSError(errno.EPERM, f"it belongs to the account with number {uid}, and is left to that")
