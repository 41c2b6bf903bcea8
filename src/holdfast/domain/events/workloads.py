"""The events of job sets and arrays, of quarantined workloads, and of notifications."""

from __future__ import annotations

from holdfast.domain.events.registry import Event, event
from holdfast.domain.terms.kinds import ARRAY, JOB_SET


@event("jobset.created", about=JOB_SET.plural)
class JobSetCreated(Event, frozen=True):
    """A job set was accepted."""

    job_set: str
    """Its id, in this and all following events."""
    name: str
    jobs: int = 0
    submitted_by: str = ""
    """Its owner."""


@event("jobset.changed", about=JOB_SET.plural)
class JobSetChanged(Event, frozen=True):
    """A user changed a job set's manifest, or suspended, resumed or restarted it."""

    job_set: str
    name: str
    change: str
    """``updated``, ``suspended``, ``resumed``, ``restarted``."""
    detail: str = ""


@event("jobset.decided", about=JOB_SET.plural)
class JobSetDecided(Event, frozen=True):
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


@event("jobset.noted", about=JOB_SET.plural)
class JobSetNoted(Event, frozen=True):
    """A message about a job set, in the words of Kubernetes' events."""

    job_set: str
    name: str
    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


@event("jobset.ended", about=JOB_SET.plural)
class JobSetEnded(Event, frozen=True):
    """A job set ended; final."""

    job_set: str
    name: str
    outcome: str
    """``Completed`` or ``Failed``."""
    reason: str
    message: str


@event("jobset.deleted", about=JOB_SET.plural)
class JobSetDeleted(Event, frozen=True):
    """A job set was deleted, by a user or because its time to live expired."""

    job_set: str
    name: str


@event("array.ended", about=ARRAY.plural)
class ArrayEnded(Event, frozen=True):
    """An array ended; final."""

    array: str
    name: str
    outcome: str
    """``Succeeded``, ``Failed`` or ``Cancelled``."""
    succeeded: int
    """Number of tasks that succeeded."""
    failed: int
    cancelled: int
    reason: str


@event("array.deleted", about=ARRAY.plural)
class ArrayDeleted(Event, frozen=True):
    """An array was deleted; its tasks are kept."""

    array: str
    name: str


@event("workload.quarantined")
class WorkloadQuarantined(Event, frozen=True):
    """An error inside Holdfast while handling a workload: it is not handled any more, and no others are affected."""

    workload: str
    """Its id."""
    kind: str
    """``gang``, ``kubejob`` or ``jobset``; ``job`` if not even the kind could be determined."""
    message: str


@event("workload.released")
class WorkloadReleased(Event, frozen=True):
    """A workload is handled again, after a user's request or a server restart."""

    workload: str
    kind: str


@event("notification.delivered")
class NotificationDelivered(Event, frozen=True):
    """A notification was delivered."""

    id: str
    to: str
    """Name of the notifier."""
    about: str
    """Id of the job or array."""
    tries: int


@event("notification.dead")
class NotificationDead(Event, frozen=True):
    """Delivery was given up; it can be replayed."""

    id: str
    to: str
    """Name of the notifier."""
    about: str
    """Id of the job or array."""
    tries: int
    error: str
    """Why the last try failed."""
