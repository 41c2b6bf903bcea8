"""Starts one program: its directory, environment, log and session; names each failure to do so."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from .. import account, files
from ..account import IGNORED_BY_PYTHON, Account, CannotEnter, NoAccount, acting
from ..records import BEGAN_OF, CHECKPOINTS, PROGRESS, RESULT, STOP, TERMINATION, TIMES_OF, WORK
from . import inputs, preparing, scripts, times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..records import Message, SupervisedRun

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
"""Errors of the server's own files on a disk that has failed, was remounted read-only or made immutable."""
_OURS = 0o700
_PASSABLE = 0o711
"""The mode of a directory of the server that contains directories of runs' accounts."""
_NOT_PLAIN = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EINVAL)
"""The error of opening a link or a pipe."""
_INVALID = "InvalidCommand"
"""An argument that no system call can carry, such as one with a NUL character."""
_NOT_THERE, _NO_ACCOUNT = "SecretNotFound", "AccountNotFound"
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class CannotLaunch(Exception):
    """A program could not be started."""

    def __init__(self, reason: str, message: str) -> None:
        """Carry a reason and a message."""
        self.reason = reason
        self.message = message
        super().__init__(message)


def refused(number: int, what: str) -> CannotLaunch:
    """Describe a failure by the system's error number; call it in the directory that holds the runs."""
    reason, why = _REASONS.get(number, "LaunchError"), os.strerror(number)
    if number == errno.ENOSPC and files.lacks_inodes("."):
        reason, why = "OutOfInodes", f"{why}: no more files can be made there"
    return CannotLaunch(reason, f"cannot start {what}: {why}")


def unrecorded(number: int) -> CannotLaunch:
    """Describe, by the system's error number, why a start could not be recorded."""
    reason = _REASONS.get(number, "LaunchError")
    if number in _READ_ONLY:
        reason = _REASONS[errno.EROFS]
    return CannotLaunch(reason, f"cannot start it: its start cannot be recorded: {os.strerror(number)}")


def launch(program: SupervisedRun, ready: int | None = None) -> int:
    """Start a program in a session of its own; returns its pid.

    With a descriptor in ``ready``, the process returned first prepares the run and then becomes its program. The
    caller's working directory is changed. May take as long as the file systems it needs.

    Raises:
        CannotLaunch: It did not start.
    """
    argv: list[str] = program.order["argv"]
    environment: Mapping[str, str] = program.order["env"]
    if program.order.get("missing"):
        raise CannotLaunch(_NOT_THERE, f"there is no secret {', '.join(map(repr, program.order['missing']))}")
    try:
        if ready is not None:
            return _start_prepared(program, ready, argv, environment)
        if program.account is not None:
            return _start_as(program, program.account, argv, environment)
        logs = _enter(program)
        try:
            return _spawn(_found(argv, environment), argv, environment, logs)
        finally:
            _close(logs)
    except NoAccount as error:
        raise CannotLaunch(_NO_ACCOUNT, f"cannot start it: {error}") from None
    except CannotEnter as error:
        raise _not_entered(program, error) from None
    except OSError as error:
        with acting(program.account):
            raise _not_started(program, error, argv) from None
    except ValueError as error:
        message = f"cannot start {argv[0]!r}: {error}"
        raise CannotLaunch(_INVALID, message) from None


def _start_prepared(program: SupervisedRun, ready: int, argv: list[str], environment: Mapping[str, str]) -> int:
    """Start the process that prepares a run and becomes its program, as its account if it has one."""

    def named(error: OSError, argv: list[str]) -> tuple[str, str]:
        failed = _not_started(program, error, argv)
        return failed.reason, failed.message

    def become(whole: Mapping[str, str]) -> Callable[[], object]:
        return lambda: preparing.become(program, (ready, *descriptors), argv, whole, _found, named)

    try:
        descriptors = inputs.opened(program)
    except OSError as error:
        msg = f"an input of its job is not there any more: {os.strerror(error.errno or 0)}"
        raise CannotLaunch(preparing.FAILED, msg) from None
    try:
        if program.account is not None:
            return _start_as(program, program.account, argv, environment, become)
        logs = _enter(program)
        try:
            return account.start(None, logs, enter=lambda: None, execute=become(environment))
        finally:
            _close(logs)
    finally:
        inputs.close(descriptors)


def _not_started(program: SupervisedRun, error: OSError, argv: list[str]) -> CannotLaunch:
    """Describe why a program was not started; looks into it with the rights of its account."""
    failed, more = refused(error.errno or 0, repr(argv[0])), ""
    with suppress(OSError, ValueError):
        executable = _found(argv, program.order["env"])
        more = scripts.trouble(error.errno or 0, executable, _working_directory(program))
    return CannotLaunch(failed.reason, f"{failed.message}: {more}") if more else failed


def _start_as(
    program: SupervisedRun,
    owner: Account,
    argv: list[str],
    environment: Mapping[str, str],
    become: Callable[[Mapping[str, str]], Callable[[], object]] | None = None,
) -> int:
    """Start it as another account in a directory of that account, which owns the files opened for it."""
    owner.look_up()
    _make_directories(program)
    directory, whole = _working_directory(program), {**owner.environment, **environment}
    with acting(owner):
        logs = _open_logs(program)

    def execute() -> object:
        return os.execve(_found(argv, whole), argv, whole)  # noqa: S606 - what was ordered

    then = execute if become is None else become(whole)
    try:
        return account.start(owner, logs, enter=lambda: os.chdir(directory), execute=then)
    finally:
        _close(logs)


def _found(argv: list[str], environment: Mapping[str, str]) -> str:
    return _resolve(argv[0], environment.get("PATH", _DEFAULT_PATH))


def _close(logs: list[int]) -> None:
    for log in logs:
        os.close(log)


def _enter(program: SupervisedRun) -> list[int]:
    """Open the logs and enter the working directory."""
    _make_directories(program)
    logs = _open_logs(program)
    try:
        os.chdir(_working_directory(program))
    except OSError as error:
        _close(logs)
        raise _not_entered(program, error) from None
    except ValueError:
        _close(logs)
        raise
    return logs


def _working_directory(program: SupervisedRun) -> str:
    return program.order.get("cwd") or program.path(WORK)


def _not_entered(program: SupervisedRun, error: OSError) -> CannotLaunch:
    reason = "WorkingDirNotFound" if error.errno == errno.ENOENT else _REASONS.get(error.errno or 0, "LaunchError")
    return CannotLaunch(
        reason, f"cannot enter the working directory {_working_directory(program)}: {os.strerror(error.errno or 0)}"
    )


def _open_logs(program: SupervisedRun) -> list[int]:
    logs: list[int] = []
    try:
        for name in program.logs:
            logs.append(_open_log(program.path(name)))  # noqa: PERF401 - those opened are closed if one cannot be
    except OSError:
        _close(logs)
        raise
    return logs


def _open_log(path: str) -> int:
    """Open a log for appending; whatever an earlier program put in its place is removed."""
    try:
        return files.open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        if error.errno not in _NOT_PLAIN:
            raise
    os.unlink(path)  # noqa: PTH108 - beside the calls around it
    return files.open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)


def _resolve(name: str, path: str) -> str:
    """Find a program as a shell does, in the run's own PATH and working directory."""
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
    """Note where py-spy is on a program's PATH, and by which signal the program writes its stacks itself."""
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
        setsigdef=IGNORED_BY_PYTHON,
    )


def _make_directories(program: SupervisedRun) -> None:
    """Create a run's directory with its content, and its job's directory for the job's first run.

    Raises:
        OSError: One cannot be created.
    """
    directory: str = program.order["directory"]
    account = program.account
    if "checkpoints_of" in program.order:
        _take_over_checkpoints(directory.rpartition("/")[0], program.order["checkpoints_of"], account)
    try:
        again = not _make(directory, account)
    except FileNotFoundError:
        _make_job(os.path.dirname(directory), account)  # noqa: PTH120 - once per run: a Path costs as much as the call
        again = not _make(directory, account)
    with acting(account):
        if not program.order.get("cwd"):
            _make(program.path(WORK))
        if again:
            _begin_again(program)


def _begin_again(program: SupervisedRun) -> None:
    """Mark where the output of an earlier dispatch of the same attempt ends."""
    for name in program.logs:
        _note_beginning(program.path(name), program.path(BEGAN_OF[name]))
        at_ns, size = files.mark(program.path(name))
        if size:
            times.note(program.path(TIMES_OF[name]), size, at_ns)
    preparing.forget(program)
    for name in (TERMINATION, PROGRESS, STOP, RESULT):
        with suppress(FileNotFoundError):
            os.unlink(program.path(name))  # noqa: PTH108 - as above


def _make_job(job: str, account: Account | None) -> None:
    """Create the directory of a job with its checkpoint folder; it stays ours, so that nobody replaces those."""
    os.makedirs(job, _OURS, exist_ok=True)  # noqa: PTH103 - as above
    if account is not None:
        os.chmod(job, _PASSABLE)  # noqa: PTH101 - as above
    _make(f"{job}/{CHECKPOINTS}", account)


def _take_over_checkpoints(job: str, others: list[str], account: Account | None) -> None:
    """Move the first checkpoint folder among those of other jobs to a job that has none; at any instant one job has it.

    Raises:
        OSError: It cannot be moved.
    """
    path = f"{job}/{CHECKPOINTS}"
    if os.path.lexists(path):
        return
    if _make(job) and account is not None:
        os.chmod(job, _PASSABLE)  # noqa: PTH101 - as above
    for other in others:
        if account is not None and not account.owns(f"{other}/{CHECKPOINTS}"):
            continue  # Files of another account are not handed over, whoever runs the job again.
        with suppress(FileNotFoundError):
            Path(other, CHECKPOINTS).rename(path)
            return
    _make(path, account)


def _make(path: str, account: Account | None = None) -> bool:
    """Create a directory and give it to an account; returns whether it is new."""
    try:
        os.mkdir(path, _OURS)  # noqa: PTH102 - as above
    except FileExistsError:
        return False
    if account is not None:
        account.give(path)
    return True


def _note_beginning(log: str, began: str) -> None:
    """Record where this program's part of a log begins, one line each; a missing record is better than no run."""
    with suppress(OSError):
        size = os.stat(log, follow_symlinks=False).st_size  # noqa: PTH116 - as above
        fd = files.open_plain(began, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, b"%d\n" % size)
        finally:
            os.close(fd)
