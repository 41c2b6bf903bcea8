"""The events of jobs and their attempts."""

from __future__ import annotations

from holdfast.domain.events.registry import Event, event

Place = tuple[str, str, int]
"""Executor, node, and how many consecutive ranks are there."""
LimitUsed = tuple[str, int, int | None]
"""A limit's name, how much of it is used, and the limit; ``None`` is unlimited."""


@event("job.submitted")
class JobSubmitted(Event, frozen=True):
    """A job was accepted; it is Queued, unless it waits for something else."""

    name: str
    queue: str
    priority: int = 0
    gang: int = 1
    cpu_m: int = 0
    """Millicores each run requests."""
    memory: int = 0
    """Bytes each run requests; 0 is no limit."""
    gpu: int = 0
    job_set: str = ""
    """Id of its job set, if it has one; it is Waiting then."""
    replicated_job: str = ""
    job_index: int = 0
    array: str = ""
    """Id of the array it is a task of, if it is one."""
    array_index: int = 0
    share_m: int = 0
    """Thousandths of a GPU that each run requests, if it is a share."""
    named: tuple[tuple[str, int], ...] = ()
    """Other resources each run requests, by name, in thousandths."""
    waits: str = ""
    """What it waits for; it is Waiting then."""
    submitted_by: str = ""
    """Its owner."""
    group: str = ""


@event("job.set_aside")
class JobSetAside(Event, frozen=True):
    """A job does not run for now: it waits for other work, for its job set, or for its pods' back-off."""

    attempt: int
    state: str
    reason: str
    retry_at: float | None = None
    """When its pods are due, while it is BackOff."""


@event("job.queued")
class JobQueued(Event, frozen=True):
    """A job is pending: its dependencies are met, its retry is due, or it lost its place before it started."""

    attempt: int
    """Number of the last attempt that counts."""
    reason: str = ""
    tried: tuple[str, ...] = ()
    """Nodes on which an attempt that was stopped tried it for the first time."""


@event("job.waiting")
class JobWaiting(Event, frozen=True):
    """The reason why a Queued job, or a pod of a Running one, cannot be placed has changed."""

    reason: str


@event("job.started")
class JobStarted(Event, frozen=True):
    """An attempt was placed; the job is Running."""

    attempt: int
    dispatch: int = 1
    """How often this attempt was placed; a run's uid is ``<job id>-<attempt>-<rank>-<dispatch>``."""
    places: tuple[Place, ...] = ()
    """``[executor, node, ranks]``, in order of rank."""


@event("job.retry_scheduled")
class JobRetryScheduled(Event, frozen=True):
    """A failed attempt will be followed by another; the job is BackOff until ``retry_at``, or Queued immediately."""

    attempt: int
    """Number of the attempt that failed."""
    reason: str
    policy: str | None = None
    rule: str | None = None
    delay_s: float = 0.0
    retry_at: float | None = None
    """When the retry is due; absent when that is now."""
    counter: str | None = None
    """The counter that was incremented, as ``<policy>/<rule>``; absent when the retry is not counted."""
    memory: int | None = None
    """What each run requests from now on, in bytes, if that changed."""
    avoid_node: str | None = None
    """The node the next attempt avoids."""
    avoid_devices: tuple[str, ...] = ()
    """The GPUs the next attempt avoids, each as ``<id>@<node>``."""
    avoid_nodes: tuple[str, ...] = ()
    """The nodes that the next attempt must not use, because it was tried there."""
    tried: tuple[str, ...] = ()
    """Nodes on which this attempt tried it for the first time."""


@event("job.held")
class JobHeld(Event, frozen=True):
    """A job is held until a user releases it."""

    attempt: int
    reason: str
    policy: str | None = None
    """The policy that held it; absent when a user did."""
    rule: str | None = None
    tried: tuple[str, ...] = ()
    """Nodes on which the attempt that ended tried it for the first time."""


@event("job.released")
class JobReleased(Event, frozen=True):
    """A user released a held job; it is Queued."""

    attempt: int


@event("job.retried")
class JobRetried(Event, frozen=True):
    """A user requested another attempt, which no retry policy decided and no limit counts.

    The job is Queued, or Waiting for other work.
    """

    attempt: int
    """Number of the last attempt."""
    reason: str = ""
    cpu_m: int | None = None
    """What each run requests from now on; absent if unchanged."""
    memory: int | None = None
    gpu: int | None = None
    share_m: int | None = None
    named: tuple[tuple[str, int], ...] | None = None
    waits: str = ""
    """What it waits for first; empty if it is Queued."""


@event("job.reprioritized")
class JobReprioritized(Event, frozen=True):
    """A job's priority was changed, and nothing else."""

    attempt: int
    """Number of the last attempt."""
    priority: int
    """The new priority; higher ones go first."""
    before: int


@event("job.cancel_requested")
class JobCancelRequested(Event, frozen=True):
    """A user cancelled a Running job; it ends once its runs have stopped."""

    attempt: int
    reason: str


@event("job.interrupted")
class JobInterrupted(Event, frozen=True):
    """A Running job is being stopped through no fault of its own: it is held or preempted, or its node is drained."""

    attempt: int
    reason: str


@event("job.succeeded")
class JobSucceeded(Event, frozen=True):
    """Every run of the job's last attempt ended with code 0; final."""

    attempt: int
    ended_at: float | None = None
    """When the last of them ended; the event may come later, if nothing was running to notice."""


@event("job.failed")
class JobFailed(Event, frozen=True):
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
    ended_at: float | None = None
    """When the last program ended, if one did; the event may come later."""
    final: bool = True
    """Always true: a failure that is retried is ``job.retry_scheduled``."""


@event("job.cancelled")
class JobCancelled(Event, frozen=True):
    """A user ended a job, or what it waited for can never happen; final."""

    attempt: int
    reason: str


@event("attempt.status_changed")
class AttemptStatusChanged(Event, frozen=True):
    """All of an attempt's programs are running (RUNNING), or those left are being stopped (TERMINATING).

    Written for statuses that last; one that lasts less than a controller tick is only in the job's history.
    """

    attempt: int
    status: str


@event("attempt.progressed")
class AttemptProgressed(Event, frozen=True):
    """The progress of a running attempt, from the lowest rank that reports any; at most every 30 seconds.

    Written only when it has changed; never for the tasks of an array. After a server restart one may come earlier.
    """

    attempt: int
    rank: int
    """The rank that reported."""
    progress: str
    """The first 256 characters of what it last wrote to its progress file."""


@event("attempt.ended")
class AttemptEnded(Event, frozen=True):
    """All runs of an attempt have stopped."""

    attempt: int
    ending: str
    status: str
    started_at: float | None = None
    """When the last of its programs started; absent when they never all ran."""
    cause: str = ""
    """Of the failure, like all the following fields."""
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
    container: str = ""
    """Name of the container whose exit code it is."""


@event("failure.decided")
class FailureDecided(Event, frozen=True):
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
