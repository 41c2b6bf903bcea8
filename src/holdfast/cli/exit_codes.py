"""The exit code of every way a command can end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import errors

if TYPE_CHECKING:
    from holdfast.wire.jobs import AttemptView, JobView

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
UNAVAILABLE = 5
HELD = 75
TIMED_OUT = 124
NOT_EXECUTABLE = 126
NO_SUCH_PROGRAM = 127
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143
_SIGNAL_BASE = 128

MEANINGS: dict[int, str] = {
    OK: "Done. `run` and `wait`: the job succeeded, the job set completed.",
    FAILED: "The job or job set failed, was cancelled or is gone (`wait`), or Holdfast itself failed.",
    USAGE: "Wrong usage, or an input that is not valid; nothing was done.",
    NOT_FOUND: "Not found.",
    REFUSED: "Refused because of a state, a limit, a policy, a missing token or a missing right.",
    UNAVAILABLE: "Not available: no server answers, or the data directory is in use. Try again.",
    HELD: "`run`: the job is held; `holdfast release` releases it.",
    TIMED_OUT: "`wait`, `submit --wait`, `delete`: the time ran out first.",
    NOT_EXECUTABLE: "`run`: the program was found but could not be started.",
    NO_SUCH_PROGRAM: "`run`: the program was not found.",
    HUNG_UP: "`run`: ended by SIGHUP, as when its terminal is closed, which cancels its job or array.",
    INTERRUPTED: "Interrupted by Ctrl-C.",
    TERMINATED: "`run`: ended by SIGTERM, which cancels its job or array.",
}
"""For the documentation; ``run`` otherwise ends with the job's own exit code, 128 + N for signal N."""

BY_ERROR: dict[type[errors.HoldfastError], int] = {
    errors.HoldfastError: FAILED,
    errors.InvalidRequest: USAGE,
    errors.InvalidPolicy: USAGE,
    errors.InvalidManifest: USAGE,
    errors.InvalidSetting: USAGE,
    errors.Unauthenticated: REFUSED,
    errors.Forbidden: REFUSED,
    errors.NotFound: NOT_FOUND,
    errors.Conflict: REFUSED,
    errors.AlreadyExists: REFUSED,
    errors.VersionConflict: REFUSED,
    errors.Refused: REFUSED,
    errors.QueueFull: REFUSED,
    errors.RateLimited: REFUSED,
    errors.Unavailable: UNAVAILABLE,
    errors.DataDirLocked: UNAVAILABLE,
    errors.NotLeader: UNAVAILABLE,
    errors.Uncertain: UNAVAILABLE,
    errors.EngineError: FAILED,
    errors.Internal: FAILED,
    errors.UnreadableSpec: FAILED,
}
"""Every error class, spelt out: a new class without a line here fails a test."""


def of_error(error: errors.HoldfastError) -> int:
    """Return the exit code of an error: its class's, or its nearest ancestor's."""
    return next(BY_ERROR[kind] for kind in type(error).__mro__ if kind in BY_ERROR)


def of_job(job: JobView) -> int:
    """Return the exit code ``run`` ends with for a job that has ended or is held."""
    if job.state == "Succeeded":
        return OK
    if job.state == "Held":
        return HELD
    return _of_attempt(job.attempts[-1]) if job.attempts else FAILED


def _of_attempt(attempt: AttemptView) -> int:
    if attempt.signal:
        return _SIGNAL_BASE + attempt.signal
    if attempt.exit_code:
        return attempt.exit_code
    if "LaunchFailed" in attempt.conditions:
        reasons = {container.reason for run in attempt.runs for container in run.containers}
        return NO_SUCH_PROGRAM if "CommandNotFound" in reasons else NOT_EXECUTABLE
    return FAILED
