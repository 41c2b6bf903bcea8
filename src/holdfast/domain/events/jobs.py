"""The events of jobs and their attempts."""

from __future__ import annotations

from dataclasses import dataclass

Place = tuple[str, str, int]
"""Executor, node, and how many consecutive ranks are there."""
LimitUsed = tuple[str, int, int | None]
"""A limit's name, how much of it is used, and the limit; ``None`` is unlimited."""


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """A job was accepted; it is Queued."""

    name: str
    queue: str
    priority: int = 0
    gang: int = 1
    cpu_m: int = 0
    """Millicores each run asks for."""
    memory: int = 0
    """Bytes each run asks for; 0 is no limit."""
    gpu: int = 0
    job_set: str = ""
    """Id of its job set, if it has one; it is Waiting then."""
    replicated_job: str = ""
    job_index: int = 0


@dataclass(frozen=True, slots=True)
class JobSetAside:
    """A job does not run for now: its job set decides when it does, or its pods wait for their back-off."""

    attempt: int
    state: str
    reason: str
    retry_at: float | None = None
    """When its pods are due, while it is BackOff."""


@dataclass(frozen=True, slots=True)
class JobQueued:
    """A job is pending again: its retry is due, or it lost its place before its programs started."""

    attempt: int
    """Number of the last attempt that counts."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobWaiting:
    """Why a Queued job has no place is news."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """An attempt was given its places; the job is Running."""

    attempt: int
    dispatch: int = 1
    """How often this attempt was placed; a run's uid is ``<job id>-<attempt>-<rank>-<dispatch>``."""
    places: tuple[Place, ...] = ()
    """``[executor, node, ranks]``, in order of rank."""


@dataclass(frozen=True, slots=True)
class JobRetryScheduled:
    """A failed attempt will be followed by another; the job is BackOff until ``retry_at``, or Queued at once."""

    attempt: int
    """Number of the attempt that failed."""
    reason: str
    policy: str | None = None
    rule: str | None = None
    delay_s: float = 0.0
    retry_at: float | None = None
    """When the retry is due; absent when that is now."""
    counter: str | None = None
    """The counter that grew by one, as ``<policy>/<rule>``; absent when the retry is not counted."""
    memory: int | None = None
    """What each run asks for from now on, in bytes, where that changed."""
    avoid_node: str | None = None
    """The node the next attempt avoids."""


@dataclass(frozen=True, slots=True)
class JobHeld:
    """A job is held until a user releases it."""

    attempt: int
    reason: str
    policy: str | None = None
    """The policy that held it; absent when a user did."""
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class JobReleased:
    """A user released a held job; it is Queued."""

    attempt: int


@dataclass(frozen=True, slots=True)
class JobCancelRequested:
    """A user cancelled a Running job; it ends once its runs have stopped."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobSucceeded:
    """Every run of the job's last attempt ended with code 0; final."""

    attempt: int


@dataclass(frozen=True, slots=True)
class JobFailed:
    """A job failed and is not retried; final."""

    attempt: int
    reason: str
    cause: str = ""
    category: str = ""
    subcategory: str = ""
    exit_code: int | None = None
    signal: int | None = None
    code: str = ""
    """Which check decided that it is not retried."""
    policy: str | None = None
    rule: str | None = None
    final: bool = True
    """Always true: a failure that is retried is ``job.retry_scheduled``."""


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """A user ended a job; final."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptStatusChanged:
    """An attempt's programs all run (RUNNING), or what is left of it is being stopped (TERMINATING).

    Written for statuses that last; one that is passed within a tick of the controller is in the job's history only.
    """

    attempt: int
    status: str


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """All runs of an attempt have stopped."""

    attempt: int
    ending: str
    status: str
    started_at: float | None = None
    """When the last of its programs started; absent when they never all ran."""
    cause: str = ""
    """Of the failure, as are all that follow."""
    category: str = ""
    subcategory: str = ""
    conditions: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    rank: int | None = None
    """The rank whose failure was judged."""
    node: str | None = None
    executor: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailureDecided:
    """A failure was judged."""

    attempt: int
    action: str
    code: str
    reason: str
    policy: str | None = None
    rule: str | None = None
    policy_revision: int | None = None
    delay_s: float = 0.0
    retry_at: float | None = None
    limits: tuple[LimitUsed, ...] = ()
    """``[name, used, limit]`` of each limit checked; a limit of null is none."""


JobEvent = (
    JobSubmitted
    | JobQueued
    | JobSetAside
    | JobWaiting
    | JobStarted
    | JobRetryScheduled
    | JobHeld
    | JobReleased
    | JobCancelRequested
    | JobSucceeded
    | JobFailed
    | JobCancelled
)
AttemptEvent = AttemptStatusChanged | AttemptEnded | FailureDecided
