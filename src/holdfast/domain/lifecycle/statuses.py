"""The statuses of attempts and runs."""

from __future__ import annotations

from enum import StrEnum


class AttemptStatus(StrEnum):
    """The status of one try at a whole job."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    """Finished, or ended by a user after it started."""
    ERROR = "ERROR"
    """Failed."""
    CANCELLED = "CANCELLED"
    """Never started."""


class RunStatus(StrEnum):
    """The status of one run of an attempt."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PULLING = "PULLING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class Ending(StrEnum):
    """How an attempt ended, once all its runs are terminal."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    """Ended by a user after it started."""
    NEVER_STARTED = "NeverStarted"


class Interruption(StrEnum):
    """Why a run was stopped through no fault of its own; only a preemption or eviction can cost a retry."""

    HOLD = "hold"
    """A user held the job: it is Held once it has stopped."""
    RELEASE = "release"
    """A user held the job and released it before it had stopped: it is Queued once it has."""
    DRAIN = "drain"
    """Its node is being drained: the job is Queued once it has stopped."""
    PREEMPT = "preempt"
    """Its place was requested: once it has stopped, the job has failed by preemption, and policies decide."""
    EVICT = "evict"
    """Its machine has been short of memory or disk for a while: once it has stopped, within its own grace, the job has
    failed by eviction, and policies decide."""
    EVICT_NOW = "evict-now"
    """Its machine is nearly out of memory or disk: the same with hardly any grace."""


ATTEMPT_TERMINAL = frozenset({AttemptStatus.TERMINATED, AttemptStatus.ERROR, AttemptStatus.CANCELLED})
RUN_TERMINAL = frozenset({RunStatus.TERMINATED, RunStatus.ERROR, RunStatus.CANCELLED})
RUN_ACTIVE = frozenset(RunStatus) - RUN_TERMINAL


EVICTIONS = frozenset({Interruption.EVICT, Interruption.EVICT_NOW})
OF_PLACE = frozenset({Interruption.DRAIN, Interruption.PREEMPT, *EVICTIONS})
"""Interruptions that take a place away; a run that is stopping releases it anyway."""


def changes_nothing(why: Interruption, before: Interruption | None, *, stopping: bool) -> bool:
    """Whether an interruption changes nothing for a run that may be stopping already.

    Args:
        why: Why it is to be stopped now.
        before: Why it was told to stop before, if it was.
        stopping: Whether it is being stopped.
    """
    if before is why or (why is Interruption.RELEASE and before is not Interruption.HOLD):
        return True
    sooner = why is Interruption.EVICT_NOW and before is Interruption.EVICT
    return why in OF_PLACE and stopping and not sooner
