"""Checks jobs made of pods: their state at each commit, and the runs that start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import Ending, RunStatus
from holdfast.domain.policy.decide import delay_s
from holdfast.domain.workloads.jobset.model import DependencyStatus, RestartStrategy, StartupOrder
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from tools.simulate.hosts import POD_BACKOFF
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.job import Job, Run
    from holdfast.domain.workloads.kubejob.records import PodRecord
    from holdfast.ports.store import Changes
    from tools.simulate.clocks import Readings
    from tools.simulate.invariants.setrecord import SetRecord
    from tools.simulate.machines.programs import Program, Programs

_FINAL = {None: JobState.CANCELLED, "Complete": JobState.SUCCEEDED, "Failed": JobState.FAILED}


class PodChecks:
    """What must hold of pods."""

    def __init__(
        self,
        record: SetRecord,
        programs: Programs,
        labels: Mapping[tuple[str, str], Mapping[str, str]],
        clocks: Readings,
    ) -> None:
        """Remember what was committed, what ran, every node's labels by machine and name, and controllers' clocks."""
        self._clocks = clocks
        self._record = record
        self._programs = programs
        self._labels = labels

    def check(self, changes: Changes) -> None:
        """Check a commit; it is part of the record of all jobs, and not yet of that of sets."""
        for job_id, kept in changes.of(KubeJobRecord).items():
            self._true(kept)
            self._due(job_id, kept)
        for uid, run in changes.runs.items():
            fresh = run.job_id in self._record.record.pods and uid not in self._record.runs
            if fresh and run.status is RunStatus.CREATING:
                self._may_run(run, changes)
        self._record.runs.update(uid for uid, run in changes.runs.items() if run.job_id in self._record.record.pods)
        for job in changes.jobs.values():
            if job.terminal and job.id in self._record.record.pods:
                self._over(job, changes)

    def _wells(self, job_id: str, number: int) -> list[Program]:
        programs = self._programs.of_attempt(job_id, number)
        return [program for program in programs if program.well]

    def _true(self, kept: KubeJobRecord) -> None:
        """Require successes that are counted to be real ones."""
        wells = self._wells(kept.id, 1 + kept.restart + kept.job_restart)
        ranks = {program.order.rank for program in wells}
        if kept.state.succeeded > len(wells) or not kept.state.completed_indexes <= ranks:
            refuse("true-success", f"{kept.id} counts {kept.state}, ended well: {sorted(ranks)}, {len(wells)}")

    def _due(self, job_id: str, kept: KubeJobRecord) -> None:
        """Require programs that start again in their pods to have waited for it."""
        earlier = self._record.kube_jobs.get(job_id, kept)
        same = (earlier.restart, earlier.job_restart) == (kept.restart, kept.job_restart)
        before = {pod.name: pod for pod in earlier.pods} if same else {}
        for pod in kept.pods:
            last, run = before.get(pod.name), self._record.record.runs.get(pod.run)
            if last is None or run is None or last.run == pod.run:
                continue
            due = self._due_at(last, pod)
            if run.status is RunStatus.CREATING and due is not None and self._clocks.is_early(run.status_since, due):
                refuse("back-off-waits", f"{run.uid} was handed out at {run.status_since}, due at {due}")

    def _due_at(self, last: PodRecord, pod: PodRecord) -> float | None:
        """Say when a pod's program may start again, from what was committed of it before, or from its last end."""
        ended = self._record.record.runs.get(last.run)
        if last.due is not None or ended is None or ended.ended_at is None:
            return last.due
        row, child = self._record.set_of(ended.job_id), self._record.record.jobs[ended.job_id].of_set
        policies = row and child and self._record.spec(row).by_name[child.group].retry_policies
        by_itself = pod.restarts == last.restarts + 1 and not policies and pod.in_place == last.in_place
        return ended.ended_at + delay_s(POD_BACKOFF, pod.restarts, seed="") if by_itself else None

    def _may_run(self, run: Run, changes: Changes) -> None:
        """Require that nothing is handed out for a job that is suspended, over or being deleted."""
        kept = self._kept(run.job_id, changes)
        if kept is None or not kept.present or kept.suspended or kept.deleting_since or kept.state.finished:
            refuse("asked-for", f"{run.uid} is handed out, and remembered is {kept}")
        if run.attempt != 1 + kept.restart + kept.job_restart:
            refuse("asked-for", f"{run.uid} is handed out, and the attempt is {kept}")
        row = self._row(run.job_id, changes)
        if row is None:
            return
        if row.deleting or row.state.terminal or self._record.spec(row).suspend:
            refuse("asked-for", f"{run.uid} is handed out, and its job set is {row}")
        self._in_order(run, row, changes)

    def _in_order(self, run: Run, row: JobSet, changes: Changes) -> None:
        """Require that what a replicated job waits for has come, at least once."""
        spec, child = self._record.spec(row), self._record.record.jobs[run.job_id].of_set
        names = [group.name for group in spec.replicated_jobs]
        mine = child.group if child is not None else ""
        earlier = names[: names.index(mine)] if spec.startup is StartupOrder.IN_ORDER else []
        awaited = [(name, DependencyStatus.READY) for name in earlier]
        awaited += [(one.name, one.status) for one in spec.by_name[mine].depends_on]
        for name, status in awaited:
            jobs = (job for job in self._record.jobs[row.id].values() if job.of_set and job.of_set.group == name)
            missing = [job.name for job in jobs if not self._has_come(job.id, status, changes)]
            if missing:
                refuse("starts-in-order", f"{run.uid} is handed out, {missing} are not {status}")

    def _has_come(self, job_id: str, status: DependencyStatus, changes: Changes) -> bool:
        attempts = self._record.record.attempts[job_id].values()
        if status is DependencyStatus.COMPLETE:
            return any(attempt.ending is Ending.SUCCEEDED for attempt in attempts)
        kept = self._kept(job_id, changes)
        certain = kept is not None and kept.state.condition("FailureTarget") is not None
        return certain or any(one.started_at is not None or one.ended_at is not None for one in attempts)

    def _kept(self, job_id: str, changes: Changes) -> KubeJobRecord | None:
        changed = changes.workloads.get(job_id)
        return changed if isinstance(changed, KubeJobRecord) else self._record.kube_jobs.get(job_id)

    def _row(self, job_id: str, changes: Changes) -> JobSet | None:
        row = self._record.set_of(job_id)
        return None if row is None else changes.of(JobSet).get(row.id, row)

    def _over(self, job: Job, changes: Changes) -> None:
        """Require of a job that has ended that its attempt ended so, and that nothing of it runs."""
        kept = self._kept(job.id, changes)
        ended = None if kept is None else kept.state.finished
        state = _FINAL[None if ended is None else ended.type]
        last = changes.attempts.get((job.id, job.attempt)) or self._record.record.attempts[job.id].get(job.attempt)
        beyond = job.state is JobState.FAILED and last is not None and last.ending is Ending.FAILED and last.failure
        if job.state is not state and job.state is not JobState.CANCELLED and not (beyond and ended is None):
            refuse("true-success", f"{job.name} is {job.state}, its last attempt is {ended}")
        self._programs.must_be_gone(job.id)

    def started(self, program: Program) -> None:
        """Check a program that has just started against all others that run."""
        job = self._record.record.jobs[program.order.job_id]
        if job.id in self._record.record.pods and job.of_set is not None:
            row = self._record.accepted[job.of_set.set_id]
            self._generations(program, row)
            self._topology(program)

    def _generation(self, program: Program, strategy: RestartStrategy) -> int:
        """Return how often a program's set had been restarted before it, the way its strategy restarts it."""
        if strategy is RestartStrategy.IN_PLACE:
            return self._record.in_place.get(program.order.uid, 0)
        return self._record.generations[program.order.job_id, program.order.attempt]

    def _generations(self, program: Program, row: JobSet) -> None:
        policy = self._record.spec(row).failure
        if policy is None or policy.strategy is RestartStrategy.RECREATE:
            return
        jobs = self._record.record.jobs
        mine = self._generation(program, policy.strategy)
        for other in self._programs.live():
            child = jobs[other.order.job_id].of_set
            same = child is not None and child.set_id == row.id
            if same and self._generation(other, policy.strategy) < mine:
                self._programs.suspect("generations-apart", program, other)

    def _domain(self, program: Program) -> tuple[str, str] | None:
        """Return the topology domain a program has to be alone in, if any."""
        child = self._record.record.jobs[program.order.job_id].of_set
        if child is None:
            return None
        key = self._record.spec(self._record.accepted[child.set_id]).by_name[child.group].topology
        return None if key is None else (key, self._labels[program.machine, program.order.node][key])

    def _topology(self, program: Program) -> None:
        mine = self._domain(program)
        if mine is None:
            return
        for other in self._programs.live():
            theirs = self._domain(other)
            same_job = other.order.job_id == program.order.job_id
            if theirs is not None and (theirs == mine) is not same_job:
                self._programs.suspect("domains-exclusive", program, other)
