"""Starts one program: its directory, environment, log and session; names each failure to do so."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress
from pathlib import Path

from .. import files
from ..records import BEGAN_OF, CHECKPOINTS, PROGRESS, STOP, TERMINATION, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..records import Message, Program

OUT_OF_MEMORY = "OutOfMemory"
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
    errno.ENOMEM: OUT_OF_MEMORY,
    errno.EMFILE: "OutOfFiles",
    errno.ENFILE: "OutOfFiles",
}
_READ_ONLY = (errno.EROFS, errno.EPERM, errno.EACCES, errno.EIO)
"""How a disk refuses our own files that has failed, was remounted or was made immutable."""
_OURS = 0o700
_NOT_PLAIN = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EINVAL)
"""How opening a link or a pipe is refused."""
_INVALID = "InvalidCommand"
"""Something no system call can carry, such as a NUL character."""
_NOT_THERE = "SecretNotFound"
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
    """Name a failure by the system's error number; call it in the directory that holds the runs."""
    reason, why = _REASONS.get(number, "LaunchError"), os.strerror(number)
    if number == errno.ENOSPC and files.lacks_inodes("."):
        reason, why = "OutOfInodes", f"{why}: no more files can be made there"
    return CannotLaunch(reason, f"cannot start {what}: {why}")


def unrecorded(number: int) -> CannotLaunch:
    """Name, by the system's error number, why nobody could write down that a program was started."""
    reason = _REASONS.get(number, "LaunchError")
    if number in _READ_ONLY:
        reason = _REASONS[errno.EROFS]
    return CannotLaunch(reason, f"cannot start it: its start cannot be recorded: {os.strerror(number)}")


def launch(program: Program) -> int:
    """Start a program in a session of its own; returns its pid.

    Leaves the caller's working directory changed. May take as long as the file systems it needs.

    Raises:
        CannotLaunch: It did not start.
    """
    argv: list[str] = program.order["argv"]
    environment: Mapping[str, str] = program.order["env"]
    if program.order.get("missing"):
        raise CannotLaunch(_NOT_THERE, f"there is no secret {', '.join(map(repr, program.order['missing']))}")
    try:
        logs = _enter(program)
        try:
            return _spawn(_resolve(argv[0], environment.get("PATH", _DEFAULT_PATH)), argv, environment, logs)
        finally:
            _close(logs)
    except OSError as error:
        raise refused(error.errno or 0, repr(argv[0])) from None
    except ValueError as error:
        message = f"cannot start {argv[0]!r}: {error}"
        raise CannotLaunch(_INVALID, message) from None


def _close(logs: list[int]) -> None:
    for log in logs:
        os.close(log)


def _enter(program: Program) -> list[int]:
    """Open the logs and go to the working directory."""
    _make_directories(program)
    logs: list[int] = []
    try:
        for name in program.logs:
            logs.append(_open_log(program.path(name)))  # noqa: PERF401 - those opened are closed if one cannot be
    except OSError:
        _close(logs)
        raise
    directory = program.order.get("cwd") or program.path(WORK)
    try:
        os.chdir(directory)
    except OSError as error:
        _close(logs)
        reason = "WorkingDirNotFound" if error.errno == errno.ENOENT else _REASONS.get(error.errno or 0, "LaunchError")
        raise CannotLaunch(reason, f"cannot enter the working directory {directory}: {error.strerror}") from None
    except ValueError:
        _close(logs)
        raise
    return logs


def _open_log(path: str) -> int:
    """Open a log for appending; what an earlier program put in its place is removed."""
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


def find_spy(order: Message) -> None:
    """Note where py-spy is on a program's PATH, if it is, and by which signal it would write its stacks itself."""
    environment = order["env"]
    order["stack_signal"] = environment.get("HOLDFAST_STACK_SIGNAL")
    with suppress(OSError):
        order["py_spy"] = _resolve("py-spy", environment.get("PATH", _DEFAULT_PATH))


def _spawn(program: str, argv: list[str], environment: Mapping[str, str], logs: list[int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, logs[0], 1), (os.POSIX_SPAWN_DUP2, logs[-1], 2)]
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
    if "checkpoints_of" in program.order:
        _take_over_checkpoints(directory.rpartition("/")[0], program.order["checkpoints_of"])
    try:
        again = not _make(directory)
    except FileNotFoundError:
        job = os.path.dirname(directory)  # noqa: PTH120 - once per run: a Path costs as much as the call
        os.makedirs(job, _OURS, exist_ok=True)  # noqa: PTH103 - as above
        _make(f"{job}/{CHECKPOINTS}")
        again = not _make(directory)
    if not program.order.get("cwd"):
        _make(program.path(WORK))
    if again:  # an earlier dispatch of the same attempt
        for name in program.logs:
            _note_beginning(program.path(name), program.path(BEGAN_OF[name]))
        for name in (TERMINATION, PROGRESS, STOP):
            with suppress(FileNotFoundError):
                os.unlink(program.path(name))  # noqa: PTH108 - as above


def _take_over_checkpoints(job: str, others: list[str]) -> None:
    """Move the first checkpoint folder that other jobs have to a job that has none; at any instant one has it.

    Raises:
        OSError: It cannot be moved.
    """
    path = f"{job}/{CHECKPOINTS}"
    if os.path.lexists(path):
        return
    _make(job)
    for other in others:
        with suppress(FileNotFoundError):
            Path(other, CHECKPOINTS).rename(path)
            return
    _make(path)


def _make(path: str) -> bool:
    try:
        os.mkdir(path, _OURS)  # noqa: PTH102 - as above
    except FileExistsError:
        return False
    return True


def _note_beginning(log: str, began: str) -> None:
    """Write down where this program's part of a log begins, a line each; a log without it is better than no run."""
    with suppress(OSError):
        size = os.stat(log, follow_symlinks=False).st_size  # noqa: PTH116 - as above
        fd = files.open_plain(began, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, b"%d\n" % size)
        finally:
            os.close(fd)
