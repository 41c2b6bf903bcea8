"""Checks a world after its last fault has healed: everything must come to an end, and nothing may be left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.job import JobState
from holdfast.domain.placement.fit import Place, ever_fits, on_nodes
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.conclude import shape_of
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import Array
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.ports.engine import NodeInfo
    from holdfast.ports.store import Store
    from tools.simulate.invariants.arrays import ArrayChecks
    from tools.simulate.invariants.dependencies import DependencyChecks
    from tools.simulate.invariants.record import Record
    from tools.simulate.invariants.setrecord import SetRecord
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.machines.programs import Programs


class EndChecks:
    """What must hold in the end."""

    def __init__(
        self,
        record: Record,
        sets: SetRecord,
        arrays: ArrayChecks,
        dependencies: DependencyChecks,
        programs: Programs,
        machines: Sequence[FaultyMachine],
    ) -> None:
        """Remember what was committed, what ran, and where."""
        self._arrays = arrays
        self._dependencies = dependencies
        self._record = record
        self._sets = sets
        self._programs = programs
        self._machines = machines
        nodes = [(machine.name, node) for machine in machines for node in machine.all_nodes()]
        self._places = [_place(*each) for each in nodes]
        self._mended = [
            Place((name, node.name), node.capacity, node.labels, devices=node.devices) for name, node in nodes
        ]
        """What the nodes could give if somebody mended their devices."""
        self.cluster: Collection[str] = ()
        """Names of what the whole cluster has, which is enough for any job by itself."""

    def settled(self) -> bool:
        """Whether every job has ended or waits for good reason, and all machines are empty."""
        sets = all(row.state.terminal or self._may_stay(row) for row in self._sets.rows.values())
        ends = sets and not self._arrays.unfinished(self._array_may_wait)
        return ends and all(self._may_wait(job) for job in self._record.unfinished()) and not self._left()

    def _set_may_wait(self, row: JobSet) -> bool:
        """Whether a set is suspended, or one of its jobs can never be placed."""
        if row.deleting:
            return False
        jobs = [self._record.jobs[job.id] for job in self._sets.jobs[row.id].values()]
        waits = self._dependencies.set_may_wait(row, self._one_waits)
        return waits or self._sets.spec(row).suspend or any(self._hopeless(job) for job in jobs)

    def _may_stay(self, row: JobSet) -> bool:
        """Whether a set may wait, or one of its jobs waits for a person."""
        return self._set_may_wait(row) or (not row.deleting and self._has_held_job(row))

    def _has_held_job(self, row: JobSet) -> bool:
        return any(self._record.jobs[job.id].state is JobState.HELD for job in self._sets.jobs[row.id].values())

    def _hopeless(self, job: Job) -> bool:
        """Whether a job waits for a place that does not exist, or for somebody who mends a device.

        One that is kept off nodes waits for a device of another, and fails if no other has any that would do.
        """
        shape = evolve(shape_of(job, load_spec(job.spec)), avoid=None, avoid_devices=())
        shape = on_nodes(shape, self.cluster)
        if not ever_fits(evolve(shape, avoid_nodes=frozenset()), self._places):
            return True
        return ever_fits(shape, self._mended) and not ever_fits(shape, self._places)

    def _array_may_wait(self, row: Array) -> bool:
        if row.ended or row.deleting:
            return False
        if row.state.held and not row.state.stopping:
            return True
        waits = self._dependencies.array_may_wait(row, self._one_waits)
        return waits or self._arrays.may_go_on(row, self._may_wait)

    def _one_waits(self, one: Dependency) -> bool:
        """Whether something that others wait for waits for good reason."""
        job = self._record.jobs.get(one.id)
        if job is not None:
            return self._may_wait(job)
        row, job_set = self._arrays.rows.get(one.array or one.id), self._sets.rows.get(one.id)
        if job_set is not None:
            return self._may_stay(job_set)
        return row is not None and self._array_may_wait(row)

    def _may_wait(self, job: Job) -> bool:
        if job.state is JobState.HELD:
            return True
        if job.state is JobState.WAITING and job.of_set is None:
            return self._dependencies.may_wait(job, self._one_waits)
        if job.of_set is not None:
            row = self._sets.rows.get(job.of_set.set_id)
            if row is None or row.state.terminal:
                return False
            return self._set_may_wait(row) or (job.state is JobState.WAITING and self._has_held_job(row))
        return job.state in {JobState.QUEUED, JobState.BACKOFF} and self._hopeless(job)

    def _left(self) -> list[str]:
        return [uid for machine in self._machines for uid in machine.seen()]

    def check(self, state: ControllerState | None, store: Store) -> None:
        """Check the end of a state, with the controller's memory and its store."""
        for job in self._record.unfinished():
            if not self._may_wait(job):
                refuse("all-ends", self._stuck(job))
        for row in self._sets.rows.values():
            if not row.state.terminal and not self._may_stay(row):
                refuse("all-ends", f"job set {row.name} goes on and on: {row.state}")
        for told in self._arrays.unfinished(self._array_may_wait):
            refuse("all-ends", told)
        if self._left() or any(True for _ in self._programs.live()):
            refuse("nothing-left", f"machines still have {self._left()}")
        if state is None:
            refuse("all-ends", "there is no controller in the end")
        active = [job_id for job_id in state.active if job_id not in self._record.pods]
        if state.capacity.charges or active or state.changes or store.requests(limit=1):
            refuse("nothing-left", f"the controller still has {dict(state.capacity.charges)}, {active}")
        self._sets.compare(store)
        self._record.compare(store)
        self._record.compare_events(store)

    def _stuck(self, job: Job) -> str:
        """Say what a job that does not end waits for: its reason, its attempt, and what its runs do."""
        told = f"job {job.id} is still {job.state} ({job.reason or 'no reason given'})"
        if job.retry_at is not None:
            told += f", due at {job.retry_at:.3f}"
        attempt = self._record.attempts[job.id].get(job.attempt)
        if attempt is not None:
            told += f"; attempt {attempt.number} is {attempt.status} since {attempt.status_since:.3f}"
        seen = {uid: each for machine in self._machines for uid, each in machine.seen().items()}
        for uid, run in self._record.live_runs.get(job.id, {}).items():
            really = f"seen as {seen[uid].phase}" if uid in seen else "not known"
            told += f"; run {uid} is {run.status} on {run.executor}/{run.node}, and {really} there"
        return told


def _place(executor: str, node: NodeInfo) -> Place:
    """Describe a node by what it can give in the end: no device that is in trouble."""
    well = tuple(device for device in node.devices if not device.trouble)
    return Place((executor, node.name), evolve(node.capacity, gpu=len(well)), node.labels, devices=well)
