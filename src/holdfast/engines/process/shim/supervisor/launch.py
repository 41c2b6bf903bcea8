"""Starts one program: its directory, environment, log and session; names each failure to do so."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress

from .. import files
from ..records import BEGAN, CHECKPOINTS, LOG, PROGRESS, TERMINATION, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..records import Program

_REASONS = {
    errno.ENOENT: "CommandNotFound",
    errno.ENOTDIR: "CommandNotFound",
    errno.EACCES: "PermissionDenied",
    errno.EPERM: "PermissionDenied",
    errno.ENOEXEC: "NotExecutable",
    errno.E2BIG: "ArgumentListTooLong",
    errno.ENOSPC: "DiskFull",
    errno.EDQUOT: "DiskFull",
    errno.EROFS: "ReadOnlyFileSystem",
    errno.EAGAIN: "OutOfProcesses",
    errno.ENOMEM: "OutOfMemory",
    errno.EMFILE: "OutOfFiles",
    errno.ENFILE: "OutOfFiles",
}
_OURS = 0o700
_NOT_PLAIN = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EINVAL)
"""How opening a link or a pipe is refused."""
_INVALID = "InvalidCommand"
"""Something no system call can carry, such as a NUL character."""
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
"""What a program must not find ignored; handlers go by themselves when it starts."""


class CannotLaunch(Exception):
    """A program could not be started."""

    def __init__(self, reason: str, message: str) -> None:
        """Carry the platform's word and the system's message."""
        self.reason = reason
        self.message = message
        super().__init__(message)


def refused(number: int, what: str) -> CannotLaunch:
    """Name a failure by the system's error number."""
    return CannotLaunch(_REASONS.get(number, "LaunchError"), f"cannot start {what}: {os.strerror(number)}")


def launch(program: Program) -> int:
    """Start a program in a session of its own; returns its pid.

    Leaves the caller's working directory changed. May take as long as the file systems it needs.

    Raises:
        CannotLaunch: It did not start.
    """
    argv: list[str] = program.order["argv"]
    environment: Mapping[str, str] = program.order["env"]
    try:
        log = _enter(program)
        try:
            return _spawn(_resolve(argv[0], environment.get("PATH", _DEFAULT_PATH)), argv, environment, log)
        finally:
            os.close(log)
    except OSError as error:
        raise refused(error.errno or 0, repr(argv[0])) from None
    except ValueError as error:
        message = f"cannot start {argv[0]!r}: {error}"
        raise CannotLaunch(_INVALID, message) from None


def _enter(program: Program) -> int:
    """Open the log and go to the working directory."""
    _make_directories(program)
    log = _open_log(program)
    directory = program.order.get("cwd") or program.path(WORK)
    try:
        os.chdir(directory)
    except OSError as error:
        os.close(log)
        reason = "WorkingDirNotFound" if error.errno == errno.ENOENT else _REASONS.get(error.errno or 0, "LaunchError")
        raise CannotLaunch(reason, f"cannot enter the working directory {directory}: {error.strerror}") from None
    except ValueError:
        os.close(log)
        raise
    return log


def _open_log(program: Program) -> int:
    """Open the log for appending; what an earlier program put in its place is removed."""
    path = program.path(LOG)
    try:
        return files.open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        if error.errno not in _NOT_PLAIN:
            raise
    os.unlink(path)  # noqa: PTH108 - beside the calls around it
    return files.open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)


def _resolve(name: str, path: str) -> str:
    """Find a program the way a shell does, in the run's own PATH and working directory."""
    if "/" in name:
        return name
    seen = errno.ENOENT
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.F_OK) and os.path.isfile(candidate):  # noqa: PTH113 - as below
            if os.access(candidate, os.X_OK):
                return candidate
            seen = errno.EACCES
    raise OSError(seen, os.strerror(seen))


def _spawn(program: str, argv: list[str], environment: Mapping[str, str], log: int) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    return os.posix_spawn(
        program,
        argv,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=_IGNORED_BY_PYTHON,
    )


def _make_directories(program: Program) -> None:
    """Make a run's directory, what is in it, and its job's where it is the job's first.

    Raises:
        OSError: One cannot be made.
    """
    directory: str = program.order["directory"]
    try:
        again = not _make(directory)
    except FileNotFoundError:
        job = os.path.dirname(directory)  # noqa: PTH120 - once per run: a Path costs as much as the call
        os.makedirs(f"{job}/{CHECKPOINTS}", _OURS, exist_ok=True)  # noqa: PTH103 - as above
        again = not _make(directory)
    if not program.order.get("cwd"):
        _make(program.path(WORK))
    if again:  # an earlier dispatch of the same attempt
        _note_beginning(program)
        for name in (TERMINATION, PROGRESS):
            with suppress(FileNotFoundError):
                os.unlink(program.path(name))  # noqa: PTH108 - as above


def _make(path: str) -> bool:
    try:
        os.mkdir(path, _OURS)  # noqa: PTH102 - as above
    except FileExistsError:
        return False
    return True


def _note_beginning(program: Program) -> None:
    """Write down where this program's part of the log begins, a line each; a log without it is better than no run."""
    with suppress(OSError):
        size = os.stat(program.path(LOG), follow_symlinks=False).st_size  # noqa: PTH116 - as above
        fd = files.open_plain(program.path(BEGAN), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, b"%d\n" % size)
        finally:
            os.close(fd)
