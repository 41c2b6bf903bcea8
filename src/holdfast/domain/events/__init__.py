"""What can happen, as values: every event with its name, its version and its fields.

Other systems follow Holdfast by these names. A stored event keeps its meaning forever: a field is only ever
added with a default, and any other change is a new version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.events.arrays import ArrayDeleted, ArrayEnded, ArrayEvent
from holdfast.domain.events.jobs import (
    AttemptEnded,
    AttemptEvent,
    AttemptProgressed,
    AttemptStatusChanged,
    FailureDecided,
    JobCancelled,
    JobCancelRequested,
    JobEvent,
    JobFailed,
    JobHeld,
    JobInterrupted,
    JobQueued,
    JobReleased,
    JobReprioritized,
    JobRetried,
    JobRetryScheduled,
    JobSetAside,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
    JobWaiting,
    Place,
)
from holdfast.domain.events.jobsets import (
    JobSetChanged,
    JobSetCreated,
    JobSetDecided,
    JobSetDeleted,
    JobSetEnded,
    JobSetEvent,
    JobSetNoted,
)
from holdfast.domain.events.notifications import NotificationDead, NotificationDelivered, NotificationEvent
from holdfast.domain.events.operators import (
    ENTRY_EVENTS,
    CatalogueEvent,
    EntryEvent,
    OperatorActed,
    RevisionEvent,
    SchedulingPaused,
    SchedulingResumed,
    SettingsUpdated,
)
from holdfast.domain.events.places import (
    DeviceCordoned,
    DeviceUncordoned,
    NodeCordoned,
    NodeLost,
    NodeRecovered,
    NodeShort,
    NodeUncordoned,
    PlaceEvent,
)
from holdfast.domain.events.workloads import WorkloadEvent, WorkloadQuarantined, WorkloadReleased
from holdfast.domain.terms.entries import ENTRIES

if TYPE_CHECKING:
    from holdfast.domain.workloads.base import Workload

__all__ = [
    "BY_KIND",
    "BY_NAME",
    "ENTRY_EVENTS",
    "REGISTRY",
    "ArrayDeleted",
    "ArrayEnded",
    "AttemptEnded",
    "AttemptProgressed",
    "AttemptStatusChanged",
    "CatalogueEvent",
    "DeviceCordoned",
    "DeviceUncordoned",
    "EntryEvent",
    "Event",
    "EventRecord",
    "FailureDecided",
    "JobCancelRequested",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "JobHeld",
    "JobInterrupted",
    "JobQueued",
    "JobReleased",
    "JobReprioritized",
    "JobRetried",
    "JobRetryScheduled",
    "JobSetAside",
    "JobSetChanged",
    "JobSetCreated",
    "JobSetDecided",
    "JobSetDeleted",
    "JobSetEnded",
    "JobSetEvent",
    "JobSetNoted",
    "JobStarted",
    "JobSubmitted",
    "JobSucceeded",
    "JobWaiting",
    "NodeCordoned",
    "NodeLost",
    "NodeRecovered",
    "NodeShort",
    "NodeUncordoned",
    "NotificationDead",
    "NotificationDelivered",
    "OperatorActed",
    "Place",
    "RevisionEvent",
    "SchedulingPaused",
    "SchedulingResumed",
    "SettingsUpdated",
    "StoredEvent",
    "WorkloadQuarantined",
    "WorkloadReleased",
]

Event = (
    JobEvent
    | AttemptEvent
    | CatalogueEvent
    | JobSetEvent
    | ArrayEvent
    | OperatorActed
    | PlaceEvent
    | WorkloadEvent
    | NotificationEvent
)
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
        return self.kind.__struct_fields__


REGISTRY: tuple[EventType, ...] = (
    EventType("job.submitted", 1, JobSubmitted),
    EventType("job.queued", 1, JobQueued),
    EventType("job.waiting", 1, JobWaiting),
    EventType("job.set_aside", 1, JobSetAside),
    EventType("job.started", 1, JobStarted),
    EventType("job.retry_scheduled", 1, JobRetryScheduled),
    EventType("job.held", 1, JobHeld),
    EventType("job.released", 1, JobReleased),
    EventType("job.retried", 1, JobRetried),
    EventType("job.cancel_requested", 1, JobCancelRequested),
    EventType("job.interrupted", 1, JobInterrupted),
    EventType("job.succeeded", 1, JobSucceeded),
    EventType("job.failed", 1, JobFailed),
    EventType("job.cancelled", 1, JobCancelled),
    EventType("attempt.status_changed", 1, AttemptStatusChanged),
    EventType("attempt.ended", 1, AttemptEnded),
    EventType("failure.decided", 1, FailureDecided),
    *(
        EventType(f"{ENTRIES[subject].family}.{act}", 1, kind)
        for subject, events in ENTRY_EVENTS.items()
        for act, kind in events.items()
    ),
    EventType("settings.updated", 1, SettingsUpdated),
    EventType("jobset.created", 1, JobSetCreated),
    EventType("jobset.changed", 1, JobSetChanged),
    EventType("jobset.decided", 1, JobSetDecided),
    EventType("jobset.noted", 1, JobSetNoted),
    EventType("jobset.ended", 1, JobSetEnded),
    EventType("jobset.deleted", 1, JobSetDeleted),
    EventType("array.ended", 1, ArrayEnded),
    EventType("array.deleted", 1, ArrayDeleted),
    EventType("operator.acted", 1, OperatorActed),
    EventType("node.lost", 1, NodeLost),
    EventType("node.cordoned", 1, NodeCordoned),
    EventType("node.uncordoned", 1, NodeUncordoned),
    EventType("node.short", 1, NodeShort),
    EventType("node.recovered", 1, NodeRecovered),
    EventType("workload.quarantined", 1, WorkloadQuarantined),
    EventType("workload.released", 1, WorkloadReleased),
    EventType("notification.delivered", 1, NotificationDelivered),
    EventType("notification.dead", 1, NotificationDead),
    EventType("device.cordoned", 1, DeviceCordoned),
    EventType("device.uncordoned", 1, DeviceUncordoned),
    EventType("attempt.progressed", 1, AttemptProgressed),
    EventType("scheduling.paused", 1, SchedulingPaused),
    EventType("scheduling.resumed", 1, SchedulingResumed),
    EventType("job.reprioritized", 1, JobReprioritized),
)
"""Every event there is; names are stored, so none is ever changed, only added."""
BY_NAME = {entry.name: entry for entry in REGISTRY}
BY_KIND: dict[type[Event], EventType] = {entry.kind: entry for entry in REGISTRY}


class EventRecord(NamedTuple):
    """Something that happened and is to be written in the transaction that makes it true."""

    job_id: str | None
    """The job it is about; ``None`` for what is about no job."""
    at: float
    event: Event
    group: str = ""
    """Of what it is about; of a job known by the commit."""
    owner: Workload | None = None
    """The array or the job set it is about, whose it is then; of what is about a job the job says so."""


class StoredEvent(NamedTuple):
    """An event as it was written."""

    seq: int
    """Its place among all events: grows in the order of commits, with gaps."""
    job_id: str | None
    job_seq: int | None
    """Its place among its job's events: 1, 2, 3, without gaps."""
    at: float
    event: Event
    group: str = ""
    """Of what it is about, if that has one."""

    @property
    def type(self) -> EventType:
        """Return its line of the registry."""
        return BY_KIND[type(self.event)]
