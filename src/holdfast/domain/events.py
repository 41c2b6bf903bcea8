"""What can happen, as values: every event, its name, its version and its fields.

Decides the words other systems follow Holdfast by. The registry is closed and literal: a stored event keeps its
meaning for ever, so a field is only added with a default, and anything else is a new version. Leaves when an
event happens to ``chronicle`` and what a job's events add up to to ``rebuild``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

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
    """A job is back in line: its retry is due, or it lost its place before its programs started."""

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
    """A job waits for a person."""

    attempt: int
    reason: str
    policy: str | None = None
    """The policy that held it; absent when a person did."""
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class JobReleased:
    """A person let a held job go on; it is Queued."""

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
    """``[name, used, limit]`` of each limit looked at; a limit of null is none."""


@dataclass(frozen=True, slots=True)
class PolicyCreated:
    """A retry policy was created."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class PolicyUpdated:
    """A retry policy has a new revision; it applies to failures judged from now on."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class PolicyDeleted:
    """A retry policy was deleted."""

    name: str
    revision: int
    """The last one."""


@dataclass(frozen=True, slots=True)
class QueueCreated:
    """A queue was created."""

    name: str


@dataclass(frozen=True, slots=True)
class QueueUpdated:
    """A queue was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class QueueDeleted:
    """A queue was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryCreated:
    """A failure category was created."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryUpdated:
    """A failure category was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryDeleted:
    """A failure category was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class SettingsUpdated:
    """The operator's settings were changed."""

    global_max_retries: int | None = None
    default_policy: str | None = None


@dataclass(frozen=True, slots=True)
class JobSetCreated:
    """A job set was accepted."""

    job_set: str
    """Its id, here and in all that follow."""
    name: str
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class JobSetChanged:
    """A person changed a job set: its manifest, or suspended, resumed or restarted it."""

    job_set: str
    name: str
    change: str
    """``updated``, ``suspended``, ``resumed``, ``restarted``."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class JobSetDecided:
    """A failed job of a set was judged."""

    job_set: str
    name: str
    job: str
    """Name of the job that failed."""
    restart: int
    """Restarts of the set when that job was created."""
    job_restart: int
    """Restarts of the job alone when it was created."""
    action: str
    """Empty when the set has no failure policy."""
    granted: bool
    reason: str
    message: str
    rule: str | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobSetNoted:
    """Something people should know of a job set, as Kubernetes' events tell it."""

    job_set: str
    name: str
    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class JobSetEnded:
    """A job set is over; final."""

    job_set: str
    name: str
    outcome: str
    """``Completed`` or ``Failed``."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class JobSetDeleted:
    """A job set was deleted, by a person or because its time to live was over."""

    job_set: str
    name: str


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """Somebody did something that is in the audit log."""

    actor: str
    action: str
    kind: str
    """What it was done to: ``job``, ``retry-policy``, ``queue``, ``failure-category``, ``settings``."""
    name: str
    """Which of them; a job by its id."""
    origin: str = ""
    request_id: str = ""


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
CatalogueEvent = (
    PolicyCreated
    | PolicyUpdated
    | PolicyDeleted
    | QueueCreated
    | QueueUpdated
    | QueueDeleted
    | CategoryCreated
    | CategoryUpdated
    | CategoryDeleted
    | SettingsUpdated
)
JobSetEvent = JobSetCreated | JobSetChanged | JobSetDecided | JobSetNoted | JobSetEnded | JobSetDeleted
Event = JobEvent | AttemptEvent | CatalogueEvent | JobSetEvent | OperatorActed
"""Everything that can happen."""


class EventType(NamedTuple):
    """One line of the registry."""

    name: str
    """``<what>.<happened>``."""
    version: int
    """Of its fields' meaning."""
    kind: type[Event]

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of its fields."""
        return tuple(field.name for field in fields(self.kind))


REGISTRY: tuple[EventType, ...] = (
    EventType("job.submitted", 1, JobSubmitted),
    EventType("job.queued", 1, JobQueued),
    EventType("job.waiting", 1, JobWaiting),
    EventType("job.set_aside", 1, JobSetAside),
    EventType("job.started", 1, JobStarted),
    EventType("job.retry_scheduled", 1, JobRetryScheduled),
    EventType("job.held", 1, JobHeld),
    EventType("job.released", 1, JobReleased),
    EventType("job.cancel_requested", 1, JobCancelRequested),
    EventType("job.succeeded", 1, JobSucceeded),
    EventType("job.failed", 1, JobFailed),
    EventType("job.cancelled", 1, JobCancelled),
    EventType("attempt.status_changed", 1, AttemptStatusChanged),
    EventType("attempt.ended", 1, AttemptEnded),
    EventType("failure.decided", 1, FailureDecided),
    EventType("policy.created", 1, PolicyCreated),
    EventType("policy.updated", 1, PolicyUpdated),
    EventType("policy.deleted", 1, PolicyDeleted),
    EventType("queue.created", 1, QueueCreated),
    EventType("queue.updated", 1, QueueUpdated),
    EventType("queue.deleted", 1, QueueDeleted),
    EventType("category.created", 1, CategoryCreated),
    EventType("category.updated", 1, CategoryUpdated),
    EventType("category.deleted", 1, CategoryDeleted),
    EventType("settings.updated", 1, SettingsUpdated),
    EventType("jobset.created", 1, JobSetCreated),
    EventType("jobset.changed", 1, JobSetChanged),
    EventType("jobset.decided", 1, JobSetDecided),
    EventType("jobset.noted", 1, JobSetNoted),
    EventType("jobset.ended", 1, JobSetEnded),
    EventType("jobset.deleted", 1, JobSetDeleted),
    EventType("operator.acted", 1, OperatorActed),
)
"""Every event there is; names are stored, so a line is never changed, only added."""
BY_NAME = {entry.name: entry for entry in REGISTRY}
BY_KIND: dict[type[Event], EventType] = {entry.kind: entry for entry in REGISTRY}
TERMINAL = frozenset({"job.succeeded", "job.failed", "job.cancelled"})
"""The last event of a job is one of these."""


class Occurrence(NamedTuple):
    """Something that happened and is to be written in the transaction that makes it true."""

    job_id: str | None
    """The job it is about; ``None`` for what is about no job."""
    at: float
    event: Event


class StoredEvent(NamedTuple):
    """An event as it was written."""

    seq: int
    """Its place among all events: grows in the order of commits, with gaps."""
    job_id: str | None
    job_seq: int | None
    """Its place among its job's events: 1, 2, 3, without gaps."""
    at: float
    event: Event

    @property
    def type(self) -> EventType:
        """Return its line of the registry."""
        return BY_KIND[type(self.event)]
