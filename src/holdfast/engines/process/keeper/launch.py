"""Starts one program: its directory, environment, log and session; decides what each failure to do so is called."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

from . import directories, files, memory
from .records import LOG, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from .records import Run

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


def launch(run: Run, environment: Mapping[str, str]) -> None:
    """Start a run's program in a session of its own; sets ``run.pid``, and ``run.handshake`` where exec is pending.

    Leaves the keeper's working directory changed: whoever starts many changes it back once.

    Raises:
        CannotLaunch: It did not start.
    """
    argv: list[str] = run.order["argv"]
    try:
        log = _enter(run)
        try:
            program = _resolve(argv[0], environment.get("PATH", _DEFAULT_PATH))
            if not run.cgroups:
                run.pid = _spawn(program, argv, environment, log)
            else:
                run.pid, run.handshake = _fork_into(run.cgroups, program, argv, environment, log)
        finally:
            os.close(log)
    except OSError as error:
        raise refused(error.errno or 0, repr(argv[0])) from None
    except ValueError as error:
        message = f"cannot start {argv[0]!r}: {error}"
        raise CannotLaunch(_INVALID, message) from None


def _enter(run: Run) -> int:
    """Open the log and go to the working directory."""
    directories.prepare(run)
    log = _open_log(run)
    directory = run.order.get("cwd") or run.path(WORK)
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


def _open_log(run: Run) -> int:
    """Open the log for appending; what an earlier program put in its place is removed."""
    path = run.path(LOG)
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
        if os.access(candidate, os.F_OK) and Path(candidate).is_file():
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


def _fork_into(
    groups: tuple[str, ...],
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    log: int,
) -> tuple[int, int]:
    """Start a program inside its cgroups from its first instruction.

    Returns:
        Its pid, and a pipe that is at its end once the program runs, or brings the number of the error.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid == 0:
        _become(groups, program, argv, environment, (log, writing))
    os.close(writing)
    os.set_blocking(reading, False)
    return pid, reading


def _become(
    groups: tuple[str, ...],
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    fds: tuple[int, int],
) -> NoReturn:
    log, writing = fds
    try:
        os.setsid()
        for group in groups:
            memory.join(group)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(program, argv, environment)  # noqa: S606 - running programs is what a keeper is for
    except OSError as error:
        os.write(writing, str(error.errno).encode())
    except ValueError:
        os.write(writing, str(errno.EINVAL).encode())
    finally:
        os._exit(127)
