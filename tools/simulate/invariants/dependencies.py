"""Checks of what waits for other work: that it does, and that it does not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.events.workloads import JobSetEnded
from holdfast.domain.job import JobState
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.dependencies import Condition, DependencyKind, OnUnmet
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.ports.store import Changes
    from tools.simulate.invariants.arrays import ArrayChecks
    from tools.simulate.invariants.record import Record
    from tools.simulate.invariants.setrecord import SetRecord

_UNMET = "DependencyNeverSatisfied"
"""Why a set has failed without having started."""
_WANTED = {Condition.OK: {"Succeeded", "Completed"}, Condition.FAILED: {"Failed"}}


_NEVER = ("did not succeed", "did not fail", "did not end", "never started")


class DependencyChecks:
    """What was committed of everything that may be waited for, and what must hold of those that wait."""

    def __init__(self, record: Record, arrays: ArrayChecks, sets: SetRecord) -> None:
        """Begin with nothing."""
        self._record = record
        self._arrays = arrays
        self._sets = sets
        self._begun: set[str] = set()
        """Job sets of which a program has started."""
        self._ended: dict[str, str] = {}
        """How arrays and job sets have ended, or that they were deleted before they had."""

    def check(self, changes: Changes) -> None:
        """Take in a commit that is part of the record already."""
        ends = [record.event for record in changes.events.values() if isinstance(record.event, JobSetEnded)]
        self._ended |= {row.id: row.ended for row in changes.of(Array).values() if row.ended}
        self._ended |= {end.job_set: "Cancelled" if end.reason == _UNMET else end.outcome for end in ends}
        for key in changes.forgotten:
            self._ended.setdefault(key, "deleted")
        for end in ends:
            self._set_ended(end)
        for job in changes.new_jobs.values():
            self._made(job)
        for job in changes.jobs.values():
            self._cancelled(job)

    def _made(self, job: Job) -> None:
        """Check that no task is made of an array that has to wait as a whole."""
        row = self._arrays.rows.get(job.child.set_id) if job.child is not None else None
        if row is not None:
            whole = [one for one in self._arrays.waits_for(row.id) if not one.by_index]
            self._require(whole, row.id, released=row.id in self._record.released)

    def _cancelled(self, job: Job) -> None:
        """Check that what was cancelled for something else could never have started."""
        told = any(words in job.reason for words in _NEVER)
        if job.state is not JobState.CANCELLED or not told or '"after":' not in job.spec:
            return
        if False not in map(self.holds, load_spec(job.spec).after):
            refuse("waits-for-it", f"{job.id} is cancelled, because {job.reason}")

    def _set_ended(self, end: JobSetEnded) -> None:
        """Check that a set which failed for something else could never have started."""
        after = self._sets.spec(self._sets.accepted[end.job_set]).after
        if end.reason == _UNMET and False not in map(self.holds, after):
            refuse("waits-for-it", f"{end.name} has failed, because {end.message}")

    def started(self, job_id: str) -> None:
        """Check what a program has waited for that has just started."""
        job = self._record.jobs[job_id]
        if '"after":' in job.spec:
            self._require(load_spec(job.spec).after, job_id, released=job_id in self._record.released)
        row = self._sets.set_of(job_id)
        if row is not None and row.id not in self._begun:
            self._begun.add(row.id)
            self._require(self._sets.spec(row).after, row.id, released=row.id in self._record.released)

    def _require(self, after: Sequence[Dependency], who: str, *, released: bool) -> None:
        for one in after:
            holds = self.holds(one)
            given_up = one.on_unmet is OnUnmet.RUN or (one.on_unmet is OnUnmet.HOLD and released)
            if not holds and not (holds is False and given_up):
                refuse("waits-for-it", f"{who} starts, and {one.condition} of {one.id} is {holds}")

    def holds(self, one: Dependency) -> bool | None:
        """Say whether a condition holds; ``None``: not yet, ``False``: never any more."""
        outcome = one.outcome or self._outcome(one)
        if one.condition is Condition.STARTED and one.id in self._record.live_runs:  # it had a place
            return True
        if not outcome:
            return None
        if one.condition is Condition.ENDED:
            return outcome != "deleted"
        return outcome in _WANTED.get(one.condition, ())

    def _outcome(self, one: Dependency) -> str:
        if one.target != DependencyKind.JOB:
            return self._ended.get(one.id, "")
        job = self._record.jobs.get(one.id)
        if job is None:  # a task that was not made
            ended = self._ended.get(one.array, "")
            return ended if ended == "deleted" else "Cancelled" if ended else ""
        return job.state.value if job.terminal else ""

    def may_wait(self, job: Job, waits: Callable[[Dependency], bool]) -> bool:
        """Whether a job waits for something that waits for good reason, as ``waits`` says of each thing."""
        if job.state is not JobState.WAITING or job.of_set is not None:
            return False
        after = load_spec(job.spec).after
        return self._any_waits([one for place, one in enumerate(after) if place not in job.met], waits)

    def array_may_wait(self, row: Array, waits: Callable[[Dependency], bool]) -> bool:
        """Whether an array waits as a whole for something that waits for good reason."""
        if row.state.made or row.state.stopping:
            return False
        left = [one for place, one in enumerate(self._arrays.waits_for(row.id)) if place not in row.state.met]
        return self._any_waits([one for one in left if not one.by_index], waits)

    def set_may_wait(self, row: JobSet, waits: Callable[[Dependency], bool]) -> bool:
        """Whether a job set waits for something that waits for good reason."""
        after = self._sets.spec(row).after
        return self._any_waits([one for place, one in enumerate(after) if place not in row.state.met], waits)

    def _any_waits(self, left: Sequence[Dependency], waits: Callable[[Dependency], bool]) -> bool:
        decided = [self.holds(one) for one in left]
        if False in [held for held, one in zip(decided, left, strict=True) if one.on_unmet is OnUnmet.CANCEL]:
            return False
        return any(held is None and waits(one) for held, one in zip(decided, left, strict=True))
