"""Checks of arrays: what each commit makes of them, and how they end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.job import JobState
from holdfast.domain.workloads.array.model import Array, task_id
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import ArraySpec
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.ports.store import Changes
    from tools.simulate.invariants.record import Record


class ArrayChecks:
    """What was accepted and committed of arrays, and what must hold of it."""

    def __init__(self, record: Record) -> None:
        """Begin with none."""
        self._record = self.record = record
        self.rows: dict[str, Array] = {}
        """As last committed; without those that were deleted."""
        self._specs: dict[str, ArraySpec] = {}
        self._made: dict[str, dict[int, str]] = {}
        """Ids of tasks by array and index."""
        self._running: set[str] = set()
        """Ids of tasks that run."""
        self._reruns: dict[str, str] = {}
        """Ids of tasks that were run again, and of the last array that did."""

    def accept(self, row: Array, spec: ArraySpec) -> None:
        """Take in an array that was accepted."""
        self.rows[row.id], self._specs[row.id], self._made[row.id] = row, spec, {}

    def released(self, array_id: str) -> None:
        """Note that a person releases an array, and with it each of its tasks."""
        tasks = {job.id for job in self._record.jobs.values() if job.child and job.child.set_id == array_id}
        self._record.released |= {array_id, *tasks}

    def check(self, changes: Changes) -> None:
        """Check a commit that is part of the record already."""
        changed = changes.of(Array)
        held = {key for key, row in self.rows.items() if row.state.held and changed.get(key, row).state.held}
        for job in changes.new_jobs.values():
            if job.child is not None and job.child.set_id in held:
                refuse("held-stays", f"task {job.id} is made: {self.rows[job.child.set_id]}")
            self._new_task(job)
        self._check_starts(held, changes)
        for key, row in changed.items():
            before = self.rows[key]
            if before.ended and row.state != before.state:
                refuse("terminal-absorbs", f"array {row.name} was {before.state} and becomes {row.state}")
            self.rows[key] = row
            if row.ended:
                self._ends(row)
        for key in changes.forgotten:
            self.rows.pop(key, None)

    def _check_starts(self, held: set[str], changes: Changes) -> None:
        """Check that no task starts of an array that was held before a commit and is after it."""
        for job in changes.jobs.values():
            if job.child is None or job.child.set_id not in self._made:
                continue
            if job.state is not JobState.RUNNING:
                self._running.discard(job.id)
            elif job.id not in self._running:
                self._running.add(job.id)
                if job.child.set_id in held:
                    refuse("held-stays", f"task {job.id} starts: {self.rows[job.child.set_id]}")

    def _new_task(self, job: Job) -> None:
        if job.child is None or job.child.set_id not in self._made:
            return
        row, index = self.rows.get(job.child.set_id), job.child.index
        if row is None or row.state.stopping or row.deleting:
            refuse("tasks-once", f"task {job.id} is made of an array that is to stop: {row}")
        made, spec = self._made[row.id], self._specs[row.id]
        if index in made or index not in set(spec.every_index()):
            refuse("tasks-once", f"index {index} of {row.name} is made after {made}")
        made[index] = job.id
        if row.origins:
            self._follows(row, job, index)
        alive = [one for one in made.values() if not self._record.jobs[one].terminal]
        if spec.max_running is not None and len(alive) > spec.max_running:
            refuse("tasks-once", f"{row.name} has {alive} at once, and may have {spec.max_running}")

    def _follows(self, row: Array, job: Job, index: int) -> None:
        """Check the task of a rerun against those it runs again."""
        others = tuple(task_id(one.id, one.name, index) for one in row.origins)
        if load_spec(job.spec).checkpoints_of != others:
            refuse("reruns-follow", f"task {job.id} gets checkpoints of {load_spec(job.spec).checkpoints_of}")
        going = [one for one in others if one in self._record.jobs and not self._record.jobs[one].terminal]
        if going:
            refuse("reruns-follow", f"task {job.id} is made while {going} go on")
        before = {one.id for one in row.origins}
        for other in others:
            rival = self.rows.get(self._reruns.get(other, ""))
            if rival is not None and rival.id not in before:
                refuse("reruns-follow", f"{other} is run again in {row.name}, and is in {rival.name}")
        self._reruns |= dict.fromkeys(others, row.id)

    def _ends(self, row: Array) -> None:
        counts = Counter(self._record.jobs[job_id].state for job_id in self._made[row.id].values())
        state, spec = row.state, self._specs[row.id]
        told = {JobState.SUCCEEDED: state.succeeded, JobState.FAILED: state.failed, JobState.CANCELLED: state.cancelled}
        if counts != Counter(told):
            refuse("arrays-add-up", f"{row.name} ends with {told}, and its tasks are {dict(counts)}")
        enough = state.succeeded >= spec.needed
        # Tasks may still succeed while those of an array with too many failures are being stopped.
        too_many = spec.max_failures is not None and state.failed > spec.max_failures
        rightly = {"Succeeded": enough, "Failed": too_many or not enough, "Cancelled": True}
        if not rightly[state.status]:
            refuse("arrays-add-up", f"{row.name} of {spec.total} tasks is {state}")

    def waits_for(self, key: str) -> Sequence[Dependency]:
        """Return what an array was accepted to wait for."""
        return self._specs[key].job.after

    def total(self, key: str, *, from_0: bool) -> int:
        """Count an array's tasks; those whose indexes do not count up from 0 are none if that is asked for."""
        indexes = list(self._specs[key].every_index())
        return len(indexes) if not from_0 or indexes == list(range(len(indexes))) else 0

    def may_go_on(self, row: Array, may_wait: Callable[[Job], bool]) -> bool:
        """Whether a task of an array waits for good reason."""
        jobs = self._record.jobs
        return any(not jobs[one].terminal and may_wait(jobs[one]) for one in self._made[row.id].values())

    def unfinished(self, may_wait: Callable[[Array], bool]) -> list[str]:
        """Name the arrays that go on although nothing of them waits for good reason."""
        rows = self.rows.values()
        return [f"array {row.name} goes on and on: {row.state}" for row in rows if not row.ended and not may_wait(row)]
