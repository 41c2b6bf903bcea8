"""The controller's memory: every unfinished job, with the indexes that a tick needs.

Every change goes through a method, which keeps the indexes, the events and the tick's ``Changes`` in step. All of it
can be rebuilt from the store.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.active import Active
from holdfast.controller.dependencies import Waits
from holdfast.controller.families import Families
from holdfast.controller.work_queue import WorkQueue
from holdfast.domain.audit import on_session_retry
from holdfast.domain.event_mapping import MOVES_TOLD, Outbox, set_log_event, started_event, submitted_event
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    RUN_TERMINAL,
    AttemptStatus,
    EntityKind,
    HistoryRow,
    Step,
    attempt_id,
)
from holdfast.domain.lifecycle.history import rows_for_steps
from holdfast.domain.placement.fit import Capacity
from holdfast.domain.placement.nodes import KnownNodes
from holdfast.domain.placement.scheduling import GroupKey, PendingQueue, RetryBalance, Waiting
from holdfast.domain.record import evolve
from holdfast.domain.sessions.records import Chain, first_kernels, first_session
from holdfast.domain.workloads.gang.flight import waiting_attempt
from holdfast.domain.workloads.jobset.state import SetLogEntry
from holdfast.domain.workloads.kubejob.job_status import with_wait_reason
from holdfast.ports.store import Changes, LiveSession, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.controller.kind import ForEach, JobKind
    from holdfast.domain.events.registry import EventRecord
    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.sessions.records import Followed, SessionChanges
    from holdfast.domain.workloads.base import Quarantined, Workload
    from holdfast.domain.workloads.jobset.state import JobSet, SetDecision, SetEvent
    from holdfast.domain.workloads.orders import RunOrders
    from holdfast.domain.workloads.spec import JobSpec


class ControllerState:
    """All unfinished jobs."""

    def __init__(
        self, load_spec: Callable[[str], JobSpec], *, since: Callable[[float], float] = lambda entered: entered
    ) -> None:
        """Start empty; ``since`` maps the time a status was entered to when waiting in it began to count."""
        self.token_digest: Callable[[str], str] = lambda _: ""
        self.load_spec = load_spec
        """Parses a job's specification."""
        self.since = since
        self.schedule_needed = True
        self.jobs: dict[str, Job] = {}
        self.active: dict[str, Active] = {}
        self.unplaced: dict[str, Active] = {}
        """Attempts with a history that wait for a place, by job id."""
        self.owner: dict[str, str] = {}
        """Job ids by run uid."""
        self.pending = PendingQueue()
        self.capacity = Capacity()
        self.balances: dict[tuple[str, int], RetryBalance] = {}
        self.nodes = KnownNodes()
        self.changes = Changes()
        self.chains: dict[str, Chain] = {}
        """The sessions of jobs that are sessions of Backend.AI's users, by job id."""
        self.outbox = Outbox(load_spec)
        self.queue = WorkQueue()
        self.waits = Waits(self.queue)
        self.families = Families()
        self.runs_changed: dict[str, tuple[Active, Run]] = {}
        """Runs whose status changed since the last publication, by uid."""
        self.kinds: dict[str, JobKind] = {}
        """The kind that manages jobs of each kind."""

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Restore every unfinished job."""
        attempts = {attempt.job_id: attempt for attempt in snapshot.attempts}
        runs: dict[str, list[Run]] = {}
        for run in snapshot.runs:
            runs.setdefault(run.job_id, []).append(run)
        sessions = {live.session.job_id: live for live in snapshot.sessions}
        for job in snapshot.jobs:
            attempt_anyway(job.id, partial(self.admit, job))
            if job.id in sessions and job.id in self.jobs:
                attempt_anyway(job.id, partial(self._resume_chain, job, sessions[job.id]))
            attempt = attempts.get(job.id)
            last = snapshot.history.get(attempt_id(job.id, attempt.number if attempt else job.attempt + 1))
            if job.id in self.jobs and (attempt is not None or last is not None):
                attempt_anyway(job.id, partial(self.resume, job, attempt, runs.get(job.id, ()), last))

    def drop(self, job_id: str) -> None:
        """Forget a job, except the capacity that its runs use."""
        self.chains.pop(job_id, None)
        active = self.active.pop(job_id, None)
        if active is not None:
            self.drop_runs(active)
        self.jobs.pop(job_id, None)
        self.unplaced.pop(job_id, None)
        self.pending.remove(job_id)
        self.queue.forget(job_id)

    def resume(self, job: Job, attempt: Attempt | None, runs: Iterable[Run], last: HistoryRow | None) -> None:
        """Continue with an attempt that was in flight or waited for a place."""
        pods = self.kinds[job.kind].has_pods
        if attempt is None or (attempt.status is AttemptStatus.PENDING and not pods):
            waiting = self.waiting_attempt(job)
            waiting.attempt, waiting.last = attempt or waiting.attempt, last
            return
        active = Active(job, attempt, self.load_spec(job.spec), last=last, placed=attempt.dispatch, pods=pods)
        self.active[job.id] = active
        self.pending.remove(job.id)
        self.queue.add(job.kind, job.id)
        self.capacity.usage[job.queue].jobs += not pods
        for run in runs:
            active.runs[run.uid] = run
            self.owner[run.uid] = job.id
            self.runs_changed[run.uid] = (active, run)
            if run.status not in RUN_TERMINAL:
                self.capacity.charge(run, job.queue, job.submitted_by)
                self.capacity.usage[job.queue].jobs += pods

    def admit(self, job: Job) -> None:
        """Take in a new job; a known one is ignored."""
        if job.id in self.jobs or job.terminal:
            return
        self.jobs[job.id] = self.families.join(job) if job.parent else job
        self.kinds[job.kind].index(job)

    def take_in(self, job: Job) -> None:
        """Take in a job that was just submitted."""
        session = None if job.id in self.jobs else self.load_spec(job.spec).session
        if session is not None:
            first = first_session(job, session)
            self.chains[job.id] = Chain(session, first, first_kernels(first))
        self.admit(job)
        self.kinds[job.kind].admit(job)

    def follow_session(self, seen: Followed, now: float) -> None:
        """Bring the sessions of a job up to what became of it."""
        chain = self.chains.get(seen.job.id)
        if chain is not None:
            after = chain.follow(seen, now)
            self._put_sessions(after)
            for child, parent in after.retries.items():
                self.changes.audited.append(on_session_retry(after.sessions[child], after.sessions[parent], now))
            for session, attempt in after.ended:
                self.outbox.session_ended(self.changes.events, self.changes.notifications, seen.job, session, attempt)
            if seen.job.terminal:
                del self.chains[seen.job.id]

    def _put_sessions(self, after: SessionChanges) -> None:
        changes = self.changes
        changes.sessions |= after.sessions
        changes.kernels |= after.kernels
        changes.retries |= after.retries
        changes.history |= {row.key: row for row in after.history}

    def _resume_chain(self, job: Job, live: LiveSession) -> None:
        spec = self.load_spec(job.spec).session
        if spec is not None:
            self.chains[job.id] = Chain(spec, live.session, live.kernels, live.last)

    def put_job(self, job: Job, ended: Attempt | None = None) -> None:
        """Change a job; ``ended`` is the attempt whose end changes it, if any."""
        changes = self.changes
        before = self.jobs.get(job.id, job)
        changes.jobs[job.id] = job
        if job.priority != before.priority:
            changes.priorities[job.id] = job.priority
        self.outbox.job_changed(changes.events, before, job, changes.notifications, ended=ended)
        active = self.active.get(job.id) or self.unplaced.get(job.id)
        if active is not None:
            active.job = job
        self._heed(job.id, job)
        if job.parent or job.id in self.families.children:
            self.families.heed(before, job)
        if job.terminal:
            self.jobs.pop(job.id, None)
            self.unplaced.pop(job.id, None)
            self.pending.remove(job.id)
            self.queue.forget(job.id)
            return
        self.jobs[job.id] = job
        self.kinds[job.kind].index(job)

    def reopen(self, job: Job, attempt: int) -> None:
        """Take in an ended job whose last attempt has this number."""
        self.jobs[job.id] = self.families.join(evolve(job, attempt=attempt))

    def change_spec(self, job: Job, spec: str) -> Job:
        """Return a job that is not running with another specification."""
        self.changes.specs[job.id] = spec
        read = self.load_spec(spec)
        waiting = self.unplaced.get(job.id)
        if waiting is not None:
            waiting.spec = read
            waiting.attempt = evolve(waiting.attempt, request=read.resources)
        return evolve(job, spec=spec, request=read.resources)

    def end_unread(self, job: Job, ended: Job, attempts: Iterable[Attempt], runs: Iterable[Run]) -> None:
        """End a job that could not be taken in, with its attempts and runs."""
        self.changes.attempts |= {attempt.key: attempt for attempt in attempts}
        self.changes.runs |= {run.uid: run for run in runs}
        self.changes.jobs[job.id] = ended
        self.changes.unread[job.id] = ended
        self.outbox.job_changed(self.changes.events, job, ended)
        self._heed(job.id, ended)
        self.families.heed(job, ended)

    def note_reason(self, job_id: str, reason: str, now: float) -> bool:
        """Remember why a job, or a pod of a running one, waits; returns whether the reason is new."""
        job = self.jobs.get(job_id)
        if job is None or (noted := with_wait_reason(job, reason, now)) is job:
            return False
        self.jobs[job_id] = self.changes.jobs[job_id] = noted
        self.outbox.job_changed(self.changes.events, job, noted)
        active = self.active.get(job_id) or self.unplaced.get(job_id)
        if active is not None:
            active.job = noted
        return True

    def waiting_attempt(self, job: Job) -> Active:
        """Return the attempt that waits for a place."""
        active = self.unplaced.get(job.id)
        if active is None:
            active = self.unplaced[job.id] = Active(job, waiting_attempt(job), self.load_spec(job.spec))
        elif active.attempt.status_since != job.queued_at:
            active.attempt = evolve(active.attempt, status_since=job.queued_at)
        return active

    def open(self, job: Job, attempt: Attempt, runs: Sequence[Run]) -> Active:
        """Begin an attempt with its runs on their places; its history continues."""
        active = self.unplaced.pop(job.id, None) or Active(job, attempt, self.load_spec(job.spec))
        active.job, active.attempt = job, attempt
        self.jobs[job.id] = self.changes.jobs[job.id] = job
        self.active[job.id] = active
        self.pending.remove(job.id)
        self._heed(job.id, job)
        self.changes.attempts[job.id, attempt.number] = attempt
        self.outbox.emit(self.changes.events, started_event(job, attempt, runs))
        self.capacity.usage[job.queue].jobs += 1
        for run in runs:
            active.runs[run.uid] = run
            self.owner[run.uid] = job.id
            self.changes.runs[run.uid] = run
            self.runs_changed[run.uid] = (active, run)
            if run.status not in RUN_TERMINAL:
                self.capacity.charge(run, job.queue, job.submitted_by)
        return active

    def open_pods(self, job: Job, attempt: Attempt) -> Active:
        """Begin an attempt without runs."""
        active = Active(job, attempt, self.load_spec(job.spec), pods=True)
        self.active[job.id] = active
        self.changes.attempts[attempt.key] = attempt
        return active

    def pods_started(self, active: Active, job: Job, runs: Sequence[Run]) -> None:
        """Note that a waiting job runs, with these runs."""
        active.job = self.jobs[job.id] = self.changes.jobs[job.id] = job
        self.outbox.emit(self.changes.events, started_event(job, active.attempt, runs))
        self._heed(job.id, job)

    def wait(self, group: GroupKey, waiting: Waiting, *, job_id: str = "") -> None:
        """Queue a job or a pod for a place."""
        if job_id:
            self.owner[waiting.job_id] = job_id
        self.pending.add(group, waiting)
        self.schedule_needed = True

    def wait_no_more(self, key: str) -> None:
        """Take a job or a pod out of the queue for places."""
        self.owner.pop(key, None)
        self.pending.remove(key)

    def lose_places(self, executor: str, *, but: Collection[str] = ()) -> None:
        """Forget the places of an executor, or those it no longer has."""
        self.capacity.drop_places(executor, but=but)
        self.schedule_needed = self.schedule_needed or not but

    def submit(self, job: Job) -> None:
        """Submit a job with this commit; it can be taken in after that."""
        self.changes.new_jobs[job.id] = job
        self._heed(job.id, job)
        self.outbox.emit(self.changes.events, submitted_event(job))

    def put_workload(self, record: Workload, notifications: Collection[Notification] = ()) -> None:
        """Change the record of a workload, and notify people."""
        self.changes.workloads[record.id] = record
        if notifications:
            self.changes.notifications += notifications
        if record.id in self.waits.awaited:
            self.waits.heed(record.id, record)

    def forget_workload(self, key: str) -> None:
        """Forget a workload and its log."""
        self.changes.workloads.pop(key, None)
        self.changes.forgotten[key] = None
        self._heed(key, None)

    def _heed(self, key: str, what: Job | Workload | None) -> None:
        if key in self.waits.awaited:
            self.waits.heed(key, what)

    def log_of_set(self, row: JobSet, what: Sequence[SetDecision | SetEvent], now: float) -> None:
        """Append to a job set's log and to the events."""
        self.changes.set_log += [SetLogEntry(set_id=row.id, at=now, what=set_event) for set_event in what]
        self.outbox.emit(self.changes.events, *[set_log_event(row, set_event, now) for set_event in what])

    def handled(self, request: int) -> None:
        """Note that a request was acted on."""
        self.changes.handled.append(request)

    def quarantine(self, quarantined: Quarantined) -> None:
        """Note that a workload is quarantined."""
        self.changes.quarantined[quarantined.id] = quarantined
        self.pending.remove(quarantined.id)
        self.queue.forget(quarantined.id)

    def release(self, key: str) -> None:
        """Note that a workload is no longer quarantined."""
        self.changes.quarantined[key] = None

    def emit(self, record: EventRecord, notifications: Iterable[Notification] = ()) -> None:
        """Emit an event that changes no job, and notify people."""
        self.changes.notifications += notifications
        self.outbox.emit(self.changes.events, record)

    def take_runs_changed(self) -> dict[str, tuple[Active, Run]]:
        """Return the runs whose status changed since the last call."""
        runs, self.runs_changed = self.runs_changed, {}
        return runs

    def tell_again(self, active: Active) -> None:
        """Publish an attempt's runs to their executors once more."""
        self.runs_changed |= {uid: (active, run) for uid, run in active.runs.items()}

    def carry_out(self, active: Active, orders: RunOrders) -> None:
        """Carry out the orders of a look at an attempt."""
        if orders.give_back or orders.keep or orders.start:
            self._take_places(active, orders)
        if orders.start or orders.put:
            self.put_runs(active, (*orders.start, *orders.put.values()))
        for run in orders.note.values():
            self.note_run(active, run)
        for uid in orders.forget:
            active.runs.pop(uid, None)
            self.owner.pop(uid, None)
        if orders.steps:
            self.steps(active, orders.steps)
        if orders.tell_again:
            self.tell_again(active)
        if orders.withdraw:
            self.withdraw(active)

    def _take_places(self, active: Active, orders: RunOrders) -> None:
        queue, user = active.job.queue, active.job.submitted_by
        for uid in orders.give_back:
            self.schedule_needed = self.capacity.release(uid) or self.schedule_needed
        if orders.grants:
            self.capacity.grant(orders.grants)
        for run in (*orders.keep.values(), *orders.start):
            self.capacity.charge(run, queue, user)
        for run in orders.start:
            self.owner[run.uid] = run.job_id
            self.capacity.usage[queue].jobs += 1

    def note_attempt(self, active: Active, attempt: Attempt) -> None:
        """Store news of an attempt that takes no step."""
        active.attempt = self.changes.attempts[attempt.key] = attempt

    def steps(self, active: Active, steps: Sequence[tuple[Step, Attempt]], *, kept: bool = True) -> None:
        """Write steps of an attempt, each merged with the last one if it repeats it, and the attempt after each.

        A terminal attempt is neither in flight nor waiting; for one that is not kept only the history is written.
        """
        before, attempt = active.attempt, steps[-1][1]
        moves = [(step, after.status) for step, after in steps]
        for row in rows_for_steps(active.last, moves, EntityKind.ATTEMPT, attempt_id(*before.key), before.status):
            active.last = self.changes.history[row.kind, row.id, row.seq] = row
        if attempt is before or not kept:
            return
        active.attempt = self.changes.attempts[attempt.job_id, attempt.number] = attempt
        if attempt.status is not before.status and attempt.status in MOVES_TOLD:
            self.outbox.attempt_moved(self.changes.events, attempt)
        if attempt.status in ATTEMPT_TERMINAL and self.unplaced.pop(attempt.job_id, None) is None:
            self._close(active)

    def put_run(self, active: Active, run: Run) -> None:
        """Change a run, and have its job looked at."""
        self.put_runs(active, (run,))
        if run.job_id in self.chains:
            self._put_sessions(self.chains[run.job_id].run_changed(run, run.status_since))
        self.queue.add(active.job.kind, run.job_id, urgent=run.status in RUN_TERMINAL)

    def put_runs(self, active: Active, runs: Iterable[Run]) -> None:
        """Change runs; a terminal run returns its capacity."""
        for run in runs:
            active.runs[run.uid] = run
            self.changes.runs[run.uid] = run
            self.runs_changed[run.uid] = (active, run)
            if run.status in RUN_TERMINAL and self.capacity.release(run.uid):
                self.schedule_needed = True
                self.capacity.usage[active.job.queue].jobs -= active.pods

    def note_run(self, active: Active, run: Run) -> None:
        """Store news of a run without reconciling its attempt, because no decision depends on it."""
        active.runs[run.uid] = self.changes.runs[run.uid] = run

    def drop_runs(self, active: Active) -> None:
        """Forget an attempt's runs, all of them terminal, before it is placed anew."""
        for uid in active.runs:
            self.owner.pop(uid, None)
        active.runs = {}

    def _close(self, active: Active) -> None:
        self.active.pop(active.attempt.job_id, None)
        self.capacity.usage[active.job.queue].jobs -= not active.pods
        self.schedule_needed = True
        self.drop_runs(active)

    def withdraw(self, active: Active) -> None:
        """Withdraw an attempt that is to be placed anew; its job is pending again."""
        self._close(active)
        self.unplaced[active.attempt.job_id] = active

    def see_node(self, node: Node) -> None:
        """Take in a node as its executor reports it."""
        if self.nodes.report(node, self.capacity, self.changes.nodes):
            self.schedule_needed = True

    def change_node(self, node: Node) -> None:
        """Take in a change of a node made here; the node may be away."""
        if self.nodes.change(node, self.capacity, self.changes.nodes):
            self.schedule_needed = True
