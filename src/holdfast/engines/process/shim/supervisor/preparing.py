"""The preparation of a run, in the process that then becomes its program, and how the supervisor observes it.

Because it is the same process, the preparation has the run's account, control group and log, is stopped and killed with
it, and goes on without a supervisor like any program. At its end it writes one line to a file: ``done``, or the reason
and message of a failure. A run that ended without such a line never started its program. A socket tells the supervisor
sooner: it closes when the program starts. Nothing happens before the supervisor has recorded the process and said so
over that socket, because the process does not carry its run's mark yet.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from .. import files, moment
from ..account import acting
from ..libc import set_name
from ..records import LOG, PREPARED, STDERR
from . import inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from ..records import SupervisedRun

DONE = "done"
FAILED = "PreparationFailed"
_MOST_DESCRIPTORS = 1 << 20
_COULD_NOT = 127
_LONGEST_SAID = 300


def become(
    program: SupervisedRun,
    descriptors: Sequence[int],
    argv: list[str],
    environment: Mapping[str, str],
    find: Callable[[list[str], Mapping[str, str]], str],
    refused: Callable[[OSError, list[str]], tuple[str, str]],
) -> NoReturn:
    """Prepare a run and become its program; called in its process and working directory, with its rights.

    Args:
        program: The run.
        descriptors: A socket that says when to begin and closes when this is the program, then the inputs' files. All
            other descriptors above 2 are closed at once.
        argv: The program.
        environment: Its variables; it learns its deadline only at its start.
        find: Finds a program in its PATH.
        refused: Returns the reason and message of a failed start.
    """
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kept = 2
        ready, *inputs_given = descriptors
        for fd in sorted(descriptors):
            os.closerange(kept + 1, fd)
            kept = fd
        os.closerange(kept + 1, _MOST_DESCRIPTORS)
        set_name("holdfast-prep")
        if not os.read(ready, 1):
            os._exit(_COULD_NOT)  # The supervisor was killed, and nobody knows of this process.
        path = program.path(PREPARED)
        _leave(path, *_prepared(program, inputs_given, environment, find, refused))
        if _left(path) == DONE:
            limit_s = program.order.get("deadline_s")
            until = {} if limit_s is None else {"HOLDFAST_STOP_AT": f"{moment.wall() + limit_s:.3f}"}
            try:
                os.execve(find(argv, environment), argv, {**environment, **until})  # noqa: S606 - what was ordered
            except (OSError, ValueError) as error:
                _leave(path, *_refused(error, argv, refused))
    finally:
        os._exit(_COULD_NOT)


def _prepared(
    program: SupervisedRun,
    descriptors: Sequence[int],
    environment: Mapping[str, str],
    find: Callable[[list[str], Mapping[str, str]], str],
    refused: Callable[[OSError, list[str]], tuple[str, str]],
) -> tuple[str, str]:
    """Put the inputs into place and run the preparation; returns ``done`` or the failure."""
    try:
        inputs.put(program.order.get("inputs", ()), descriptors)
    except inputs.Unusable as error:
        return FAILED, str(error)
    if "prepare" not in program.order:
        return DONE, ""
    argv, limit_s = program.order["prepare"]
    log = program.path(STDERR if program.order.get("separate") else LOG)
    begin = files.mark(log)[1]
    try:
        pid = os.posix_spawn(find(argv, environment), argv, environment, setsigmask=())
        with os.fdopen(os.pidfd_open(pid), "rb") as ended:
            if not select.select([ended], [], [], limit_s)[0]:
                return FAILED, f"its preparation took longer than {limit_s:g} s"
        _, status = os.waitpid(pid, 0)
    except (OSError, ValueError) as error:
        return FAILED, f"its preparation failed: {_refused(error, argv, refused)[1]}"
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return DONE, ""
    how = f"exit code {code}" if code > 0 else f"signal {-code} ({signal.strsignal(-code)})"
    last = files.last_line(log, begin)[:_LONGEST_SAID]
    return FAILED, f"its preparation failed: {how}, {argv[0]}{': ' * bool(last)}{last}"


def _refused(
    error: OSError | ValueError, argv: list[str], refused: Callable[[OSError, list[str]], tuple[str, str]]
) -> tuple[str, str]:
    if isinstance(error, OSError):
        return refused(error, argv)
    return "InvalidCommand", f"cannot start {argv[0]!r}: {error}"


def _leave(path: str, reason: str, message: str) -> None:
    """Write down the result, whole or not at all."""
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.write(fd, f"{reason} {message}".encode("utf-8", "backslashreplace")[: files.MESSAGE_BYTES])
    os.close(fd)
    Path(fresh).rename(path)


def _left(path: str) -> str:
    return files.read_head(path).partition(" ")[0]


def forget(program: SupervisedRun) -> None:
    """Delete the result of an earlier dispatch of the attempt."""
    for name in (PREPARED, f"{PREPARED}.new"):
        with suppress(FileNotFoundError):
            Path(program.path(name)).unlink()


def see(program: SupervisedRun) -> bool:
    """Check whether a run's process has become its program since the last call.

    The program's deadline and duration count from then on.
    """
    path = program.path(PREPARED)
    with acting(program.account):
        if _left(path) != DONE:
            return False
        since_s = max(0.0, moment.wall() - files.mark(path)[0] / 1e9)
    program.preparing = False
    program.started_at, program.started_mono = moment.wall() - since_s, moment.monotonic() - since_s
    return True


def failure(program: SupervisedRun) -> tuple[str, str]:
    """Return the reason and message of an ended run that never became its program."""
    reason, _, message = files.read_head(program.path(PREPARED)).partition(" ")
    if reason and message:
        return reason, message
    return FAILED, program.note or "its preparation was ended before it was done"
