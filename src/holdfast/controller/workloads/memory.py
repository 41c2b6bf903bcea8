"""What the controller keeps in memory of Kubernetes Jobs and of what is made of jobs, beside their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from holdfast.domain.events import EventRecord, JobSetDecided, JobSetEvent, JobSetNoted
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import Event, JobSet, SetDecision, SetLogEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.children import Child, CreateChild
    from holdfast.domain.workloads.jobset.state import JobSetState
    from holdfast.domain.workloads.kubejob.pods import LivePod
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord


R = TypeVar("R", bound=Owner)
S = TypeVar("S")


class JobWork(Struct, eq=False, gc=True):
    """One job made of pods."""

    record: KubeJobRecord
    stored: KubeJobRecord | None = None
    """The record as it was last written."""
    pods: dict[str, LivePod] = field(default_factory=dict)
    """Those that have not ended, by name."""
    pod_names: dict[str, str] = field(default_factory=dict)
    """The pod of each run that has not ended, by the run's uid."""
    created: CreateChild | None = None
    """What its attempt was created by, if a job set did."""
    wake_at: float | None = None
    """When to look at it again although nothing happens."""
    grace_s: float | None = None
    """Grace for stopping from now on, when that is less than its template's."""
    last_failure: Failure | None = None
    """Of the last run that failed by itself."""


class Work(Struct, Generic[R, S], eq=False, gc=True):
    """One workload that is made of jobs."""

    row: R
    spec: S
    jobs: dict[str, str] = field(default_factory=dict)
    """Ids of its jobs that are not over, by name."""
    children: dict[str, Child] = field(default_factory=dict)
    """Its existing jobs, by name, as last seen."""
    gone: list[Job] = field(default_factory=list)
    """Those that have just gone and are not begun anew."""
    submitted: set[str] = field(default_factory=set)
    """Names of those submitted with a commit that may not be over yet."""
    over: list[str] = field(default_factory=list)
    """Names of those that have just ended for good, to be shown once more."""
    first: Mapping[str, int] = field(default_factory=dict)
    """The global index of the first job made from each thing, where they are counted through."""
    reports: dict[str, tuple[int, ...]] | None = None
    """Of a set that restarts in place: how often pods last reported to have done so, by job."""


SetWork: TypeAlias = Work[JobSet, JobSetSpec]


class KnownSets:
    """The job sets in memory, for those who look after their pods."""

    def __init__(self, state: ControllerState) -> None:
        """Start with none."""
        self.works: dict[str, SetWork] = {}
        self._state = state

    def state_of(self, job: Job) -> JobSetState | None:
        """Return the state of a job's set, if it has one."""
        work = self.works.get(job.child.set_id) if job.child is not None else None
        return None if work is None else work.row.state

    def tell(self, job: Job, event: Event, now: float) -> None:
        """Note in a job's set's log what the set would not hear of otherwise."""
        work = self.works.get(job.child.set_id) if job.child is not None else None
        if work is not None:
            self.log(work.row, (event,), now)

    def log(self, row: JobSet, what: Sequence[SetDecision | Event], now: float) -> None:
        """Append to a set's log and to the events."""
        entries = [SetLogEntry(set_id=row.id, at=now, what=each) for each in what]
        self._state.log_of_set(entries, [EventRecord(None, now, _event(row, each), row.group, row) for each in what])

    def emit(self, row: JobSet, now: float, event: JobSetEvent) -> None:
        """Append an event of a set that is about no single job."""
        self._state.emit(EventRecord(None, now, event, row.group, row))


def _event(row: JobSet, what: SetDecision | Event) -> JobSetEvent:
    if isinstance(what, Event):
        return JobSetNoted(row.id, row.name, what.type, what.reason, what.message)
    return JobSetDecided(
        job_set=row.id,
        name=row.name,
        job=what.job,
        restart=what.attempt[0],
        job_restart=what.attempt[1],
        action="" if what.action is None else what.action.value,
        granted=what.granted,
        reason=what.reason,
        message=what.message,
        rule=what.rule,
        delay_s=what.delay_s,
    )
