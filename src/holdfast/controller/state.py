"""The controller's memory: every job that is not over, indexed the ways a tick needs it.

Decides nothing; every change goes through ``put_*``, which keeps the indexes and the tick's ``Changes``
in step. What is here can always be rebuilt from the store.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.controller.capacity import Capacity
from holdfast.controller.outbox import Outbox
from holdfast.domain.coordination import recorded
from holdfast.domain.evolve import evolve
from holdfast.domain.job import Attempt, HistoryRow, Job, JobState, Node, Run
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, AttemptStatus, Outcome
from holdfast.domain.pending_queue import GroupKey, PendingQueue, Waiting
from holdfast.domain.placement import Place
from holdfast.domain.verdict import shape_of
from holdfast.ports.store import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.domain.events import Occurrence
    from holdfast.domain.placement import PlaceKey
    from holdfast.domain.scheduling import RetryBalance
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import RunOrder
    from holdfast.ports.store import Snapshot

_MOST_GROUPS = 16_384
_LIVE = [status for status in AttemptStatus if status not in ATTEMPT_TERMINAL]


@dataclass(slots=True, eq=False)
class Active:
    """An attempt in flight with the runs of its current dispatch."""

    job: Job
    attempt: Attempt
    spec: JobSpec
    runs: dict[str, Run] = field(default_factory=dict)
    last: HistoryRow | None = None
    """The last step of its history."""
    placed: int = 0
    """Of pods: how many runs were named so far, so that no uid is given twice."""
    pods: bool = False
    """Whether its runs come and go one by one, as pods do; ``controller.sets`` moves it on then."""
    order: Callable[[Run, float], RunOrder] | None = None
    """Writes out what an engine needs for one of its runs as of now, where the specification alone does not say it."""


NODE_WRITTEN_EVERY_S = 30.0
"""How old the time a living node was last seen may be where people read it."""


BURST_SHARE = 8
"""A burst is worked off in about so many steps, each of them a transaction."""


class Step(NamedTuple):
    """What happened to an attempt in a phase."""

    phase: str
    outcome: Outcome
    now: float
    code: str = ""
    message: str = ""


class ControllerState:
    """All jobs that are not over."""

    def __init__(
        self, load_spec: Callable[[str], JobSpec], *, since: Callable[[float], float] = lambda entered: entered
    ) -> None:
        """Start empty.

        Args:
            load_spec: Reads a job's stored specification.
            since: Says of when a status was entered from when on waiting in it counts.
        """
        self.since = since
        self.jobs: dict[str, Job] = {}
        self.active: dict[str, Active] = {}
        self.by_status: dict[AttemptStatus, dict[str, Active]] = {status: {} for status in _LIVE}
        """In order of entering the status, by job id."""
        self.unplaced: dict[str, Attempt] = {}
        """Attempts that lost their place before they were handed out and wait for another, by job id."""
        self.owner: dict[str, str] = {}
        """Job id by run uid."""
        self.line = PendingQueue()
        self.balances: dict[tuple[str, int], RetryBalance] = {}
        self.capacity = Capacity()
        self.changes = Changes()
        self.touched: dict[str, Active] = {}
        """Attempts something happened to; the coordinator works them off."""
        self.touched_pods: dict[str, None] = {}
        """Ids of jobs made of pods something happened to; ``controller.sets`` works them off."""
        self.backlog: dict[str, Active] = {}
        """Attempts something happened to in an earlier tick that had no time for them."""
        self._ended: dict[str, None] = {}
        """Ids of the jobs a run of which ended since the backlog was last taken from, and of those still in it."""
        self.runs_changed: dict[str, tuple[Active, Run]] = {}
        """Runs whose status changed since the last publication, by uid."""
        self.schedule_needed = True
        self._outbox = Outbox()
        self._nodes_written: dict[PlaceKey, float] = {}
        self._timers: list[tuple[float, str]] = []
        self._groups: BoundedCache[GroupKey] = BoundedCache(_MOST_GROUPS)
        self._load_spec = load_spec

    def spec(self, job: Job) -> JobSpec:
        """Return a job's specification."""
        return self._load_spec(job.spec)

    def has_pods(self, job: Job) -> bool:
        """Whether a job's runs are pods, replaced one by one."""
        return job.child is not None or self.spec(job).kube is not None

    def restore(self, snapshot: Snapshot) -> None:
        """Take in everything that was going on when the last controller stopped."""
        attempts = {attempt.job_id: attempt for attempt in snapshot.attempts}
        runs: dict[str, list[Run]] = {}
        for run in snapshot.runs:
            runs.setdefault(run.job_id, []).append(run)
        for job in snapshot.jobs:
            self.admit(job)
            attempt = attempts.get(job.id)
            if attempt is not None:
                self._resume(job, attempt, runs.get(job.id, ()), snapshot.history.get(attempt.key))
        self.changes = Changes()

    def _resume(self, job: Job, attempt: Attempt, runs: Iterable[Run], last: HistoryRow | None) -> None:
        pods = self.has_pods(job)
        if attempt.status is AttemptStatus.PENDING and not pods:
            self.unplaced[job.id] = attempt
            return
        active = Active(job, attempt, self.spec(job), last=last, placed=attempt.dispatch, pods=pods)
        self.active[job.id] = active
        self.line.remove(job.id)
        self.by_status[attempt.status][job.id] = active
        self.touch(active)
        self.capacity.usage_of(job.queue).jobs += not pods
        for run in runs:
            active.runs[run.uid] = run
            self.owner[run.uid] = job.id
            self.runs_changed[run.uid] = (active, run)
            if run.status not in RUN_TERMINAL:
                self.capacity.charge(run, job.queue)
                self.capacity.usage_of(job.queue).jobs += pods

    def admit(self, job: Job) -> None:
        """Take in a job that was not known; a known one is ignored."""
        if job.id in self.jobs or job.terminal:
            return
        self.jobs[job.id] = job
        self._index(job)
        spec = self.spec(job)
        if spec.total_deadline_s is not None:
            self.remind(job.submitted_at + spec.total_deadline_s, job.id)

    def remind(self, when: float, job_id: str) -> None:
        """Ask for ``due`` to name a job at a time."""
        heapq.heappush(self._timers, (when, job_id))

    def due(self, now: float) -> list[str]:
        """Return the jobs whose reminders are due, in order; a job may have nothing to do any more."""
        names = []
        while self._timers and self._timers[0][0] <= now:
            names.append(heapq.heappop(self._timers)[1])
        return list(dict.fromkeys(names))

    def next_due(self) -> float | None:
        """Return the time of the next reminder."""
        return self._timers[0][0] if self._timers else None

    def put_job(self, job: Job) -> None:
        """Change a job."""
        self.changes.jobs[job.id] = job
        self._outbox.job_changed(self.changes, self.jobs.get(job.id, job), job)
        active = self.active.get(job.id)
        if active is not None:
            active.job = job
        if job.terminal:
            self.jobs.pop(job.id, None)
            self.line.remove(job.id)
            return
        self.jobs[job.id] = job
        self._index(job)

    def _index(self, job: Job) -> None:
        if self.has_pods(job):
            return
        if job.state is JobState.QUEUED and job.id not in self.active:
            spec = self.spec(job)
            self.line.add(self._group(job, spec), Waiting(-job.priority, job.seq, job.id, job.queued_at))
            self.schedule_needed = True
            if spec.scheduling_timeout_s is not None:
                self.remind(job.queued_at + spec.scheduling_timeout_s, job.id)
            return
        self.line.remove(job.id)
        if job.retry_at is not None:
            self.remind(job.retry_at, job.id)

    def _group(self, job: Job, spec: JobSpec) -> GroupKey:
        """Return the group a job waits in; only memory and the avoided node ever differ from its specification."""
        ran = job.attempt > 0
        return self._groups.answer(
            (job.queue, job.spec, job.request.memory, job.avoid_node, ran),
            lambda: GroupKey(job.queue, shape_of(job, spec.node_selector), ran),
        )

    def note_reason(self, job_id: str, reason: str, now: float) -> None:
        """Remember why a job waits, if that is news."""
        job = self.jobs.get(job_id)
        if job is not None and job.reason != reason and job.state is JobState.QUEUED:
            noted = evolve(job, reason=reason, updated_at=now)
            self.jobs[job_id] = self.changes.jobs[job_id] = noted
            self._outbox.job_changed(self.changes, job, noted)
            active = self.active.get(job_id)
            if active is not None:
                active.job = noted

    def open(self, job: Job, attempt: Attempt, runs: Sequence[Run]) -> Active:
        """Begin an attempt with its runs on their places."""
        active = Active(job, attempt, self.spec(job))
        self.jobs[job.id] = self.changes.jobs[job.id] = job
        self.active[job.id] = active
        self.line.remove(job.id)
        self.by_status[attempt.status][job.id] = active
        self.touched[job.id] = active
        self.changes.attempts[attempt.key] = attempt
        self._outbox.started(self.changes, job, attempt, runs)
        self.capacity.usage_of(job.queue).jobs += 1
        for run in runs:
            active.runs[run.uid] = run
            self.owner[run.uid] = job.id
            self.changes.runs[run.uid] = run
            self.capacity.charge(run, job.queue)
        return active

    def open_pods(self, job: Job, attempt: Attempt) -> Active:
        """Begin an attempt whose runs are yet to come."""
        active = Active(job, attempt, self.spec(job), pods=True)
        self.active[job.id] = active
        self.by_status[attempt.status][job.id] = active
        self.changes.attempts[attempt.key] = attempt
        return active

    def place_pod(self, active: Active, run: Run) -> None:
        """Give an attempt one more run, on its place."""
        if run.dispatch > active.attempt.dispatch:
            active.attempt = evolve(active.attempt, dispatch=run.dispatch)
        self.changes.attempts[active.attempt.key] = active.attempt
        active.runs[run.uid] = run
        self.owner[run.uid] = run.job_id
        self.changes.runs[run.uid] = run
        self.runs_changed[run.uid] = (active, run)
        self.capacity.charge(run, active.job.queue)
        self.capacity.usage_of(active.job.queue).jobs += 1

    def pods_started(self, active: Active, runs: Sequence[Run]) -> None:
        """Tell that a job goes on from waiting to running, with these runs."""
        job = active.job
        self.jobs[job.id] = self.changes.jobs[job.id] = job
        self._outbox.started(self.changes, job, active.attempt, runs)

    def forget_run(self, active: Active, uid: str) -> None:
        """Forget a run that has ended, of an attempt that goes on."""
        active.runs.pop(uid, None)
        self.owner.pop(uid, None)

    def happened(self, occurrence: Occurrence) -> None:
        """Tell of something that is about no single job."""
        self._outbox.happened(self.changes, occurrence)

    def touch(self, active: Active) -> None:
        """Have an attempt looked at."""
        if active.pods:
            self.touched_pods[active.attempt.job_id] = None
        else:
            self.touched[active.attempt.job_id] = active

    def put_attempt(self, active: Active, attempt: Attempt) -> None:
        """Change an attempt; a terminal one is no longer in flight."""
        before = active.attempt.status
        active.attempt = attempt
        self.changes.attempts[attempt.key] = attempt
        if attempt.status is before:
            return
        del self.by_status[before][attempt.job_id]
        if attempt.status in ATTEMPT_TERMINAL:
            self._outbox.attempt_ended(self.changes, attempt)
            self._close(active)
        else:
            self._outbox.attempt_moved(self.changes, attempt)
            self.by_status[attempt.status][attempt.job_id] = active
            self.touch(active)

    def put_run(self, active: Active, run: Run) -> None:
        """Change a run; a terminal one gives its capacity back."""
        active.runs[run.uid] = run
        self.changes.runs[run.uid] = run
        self.runs_changed[run.uid] = (active, run)
        self.touch(active)
        if run.status not in RUN_TERMINAL:
            return
        self._ended[run.job_id] = None
        if self.capacity.release(run.uid):
            self.schedule_needed = True
            self.capacity.usage_of(active.job.queue).jobs -= active.pods

    def drop_runs(self, active: Active) -> None:
        """Forget an attempt's runs, which are all terminal, before it is placed anew."""
        for uid in active.runs:
            self.owner.pop(uid, None)
        active.runs = {}

    def _close(self, active: Active) -> None:
        job_id = active.attempt.job_id
        self.active.pop(job_id, None)
        self.touched.pop(job_id, None)
        self.touched_pods.pop(job_id, None)
        self.capacity.usage_of(active.job.queue).jobs -= not active.pods
        self.schedule_needed = True
        self.drop_runs(active)

    def withdraw(self, active: Active, attempt: Attempt) -> None:
        """Take an attempt that is to be placed anew out of flight; its job goes back in line."""
        del self.by_status[active.attempt.status][attempt.job_id]
        self.changes.attempts[attempt.key] = attempt
        self._outbox.attempt_withdrawn(self.changes, attempt)
        self.unplaced[attempt.job_id] = attempt
        self._close(active)

    def end_unplaced(self, attempt: Attempt) -> None:
        """End an attempt that has no place; its job moves on next."""
        self.unplaced.pop(attempt.job_id, None)
        self.changes.attempts[attempt.key] = attempt
        self._outbox.attempt_ended(self.changes, attempt)

    def record(self, active: Active, step: Step, to: AttemptStatus) -> None:
        """Write one step of an attempt's history, merged with the last when it repeats it."""
        attempt, last = active.attempt, active.last
        row = HistoryRow(
            job_id=attempt.job_id,
            attempt=attempt.number,
            seq=last.seq + 1 if last is not None else 0,
            phase=step.phase,
            from_status=attempt.status,
            to_status=to,
            outcome=step.outcome,
            created_at=step.now,
            updated_at=step.now,
            error_code=step.code,
            message=step.message,
        )
        active.last = recorded(last, row)
        self.changes.history[row.job_id, row.attempt, active.last.seq] = active.last

    def see_node(self, node: Node) -> None:
        """Take in a node as reported; one that stays as it is is written down again now and then."""
        key = (node.executor, node.name)
        changed = self.capacity.set_place(Place(key, node.capacity, node.labels))
        if changed or node.seen_at - self._nodes_written.get(key, 0.0) >= NODE_WRITTEN_EVERY_S:
            self._nodes_written[key] = node.seen_at
            self.changes.nodes[key] = node
        self.schedule_needed = self.schedule_needed or changed

    def take_touched(self) -> list[Active]:
        """Return the attempts something happened to just now, and forget which they were."""
        batch = list(self.touched.values())
        self.touched = {}
        return batch

    def take_backlog(self, *, least: int, most: int) -> list[Active]:
        """Return attempts something happened to before now; the others wait.

        Those of which a run ended come first, because what follows an end is waited for, then the oldest. Within the
        bounds it is an eighth of what waits: the first of a burst are on their way while the others are worked on, and
        a storm is not worked off in small steps.
        """
        self.backlog.update(self.touched)
        self.touched = {}
        room = min(most, max(least, len(self.backlog) // BURST_SHARE))
        ended = [job_id for job_id in self._ended if job_id in self.backlog]
        chosen = dict.fromkeys((*ended[:room], *islice(self.backlog, room)))
        batch = [self.backlog.pop(job_id) for job_id in islice(chosen, room)]
        self._ended = dict.fromkeys(ended[room:])
        return [active for active in batch if self.active.get(active.attempt.job_id) is active]
