"""The job sets that jobs belong to: their state, and what they hear of their jobs' pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import set_spec_of
from holdfast.controller.workloads.memory import SetWork
from holdfast.domain.events import EventRecord, JobSetDecided, JobSetNoted
from holdfast.domain.workloads.base import JOBSET
from holdfast.domain.workloads.jobset.state import Event, SetDecision, SetLogEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.controller.state import ControllerState
    from holdfast.domain.events import JobSetEvent
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.state import JobSet, JobSetState


class Owners:
    """The job sets that are not over, by id."""

    def __init__(self, state: ControllerState) -> None:
        """Start with none."""
        self.sets: dict[str, SetWork] = {}
        self._state = state

    def take_in(self, row: JobSet, jobs: Iterable[Job]) -> None:
        """Add a set with those of its jobs that are not over."""
        if row.id in self.sets:
            return
        spec = set_spec_of(row)
        self.sets[row.id] = SetWork(row, spec, {job.name: job.id for job in jobs})
        self._state.queue.add(JOBSET, row.id)

    def of(self, job: Job) -> SetWork | None:
        """Return the set of a job, if it has one that is known."""
        return self.sets.get(job.child.set_id) if job.child is not None else None

    def state_of(self, job: Job) -> JobSetState | None:
        """Return the state of a job's set."""
        work = self.of(job)
        return None if work is None else work.row.state

    def tell(self, job: Job, event: Event, now: float) -> None:
        """Note in a job's set's log what the set would not hear of otherwise."""
        work = self.of(job)
        if work is not None:
            self.log(work.row, event, now)

    def log(self, row: JobSet, what: SetDecision | Event, now: float) -> None:
        """Append to a set's log and to the events."""
        self._state.log_of_set(SetLogEntry(set_id=row.id, at=now, what=what))
        self.emit(now, _noted(row, what))

    def emit(self, now: float, event: JobSetEvent) -> None:
        """Append an event that is about no single job."""
        self._state.emit(EventRecord(None, now, event))


def _noted(row: JobSet, what: SetDecision | Event) -> JobSetEvent:
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
