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
    """Why a run was stopped through no fault of its own; only what follows a preemption can cost a retry."""

    HOLD = "hold"
    """A user holds the job: it is Held once it has stopped."""
    RELEASE = "release"
    """A user held the job and released it before it had stopped: it is Queued once it has."""
    DRAIN = "drain"
    """Its node is being drained: the job is Queued once it has stopped."""
    PREEMPT = "preempt"
    """Somebody asked for its place: the job has failed of a preemption once it has stopped, and policies decide."""
    EVICT = "evict"
    """Its machine has been running out of memory or disk for a while: the job has failed of that once it has stopped,
    within its own grace, and policies decide."""
    EVICT_NOW = "evict-now"
    """Its machine has nearly run out: the same, with hardly any grace."""


ATTEMPT_TERMINAL = frozenset({AttemptStatus.TERMINATED, AttemptStatus.ERROR, AttemptStatus.CANCELLED})
RUN_TERMINAL = frozenset({RunStatus.TERMINATED, RunStatus.ERROR, RunStatus.CANCELLED})
RUN_ACTIVE = frozenset(RunStatus) - RUN_TERMINAL


EVICTIONS = frozenset({Interruption.EVICT, Interruption.EVICT_NOW})
OF_PLACE = frozenset({Interruption.DRAIN, Interruption.PREEMPT, *EVICTIONS})
"""Those that take a place away; what is stopping already gives it back anyway."""


def changes_nothing(why: Interruption, before: Interruption | None, *, stopping: bool) -> bool:
    """Whether it makes no difference to what is stopped already, or is no answer to why it is.

    Args:
        why: Why it is to be stopped now.
        before: Why it was told to stop, if it was.
        stopping: Whether it is being stopped.
    """
    if before is why or (why is Interruption.RELEASE and before is not Interruption.HOLD):
        return True
    sooner = why is Interruption.EVICT_NOW and before is Interruption.EVICT
    return why in OF_PLACE and stopping and not sooner
