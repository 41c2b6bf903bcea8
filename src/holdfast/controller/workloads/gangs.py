"""Gangs: jobs whose runs start, fail and restart together."""

from __future__ import annotations

import logging
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec
from holdfast.controller.bounded_cache import BoundedCache
from holdfast.domain.job import Job, JobState
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.placement.scheduling import GroupKey, Waiting
from holdfast.domain.record import evolve
from holdfast.domain.sessions.records import Followed
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.children import HELD_WITH_OWNER
from holdfast.domain.workloads.gang import reconcile as gang
from holdfast.domain.workloads.gang.conclude import next_due, shape_of
from holdfast.domain.workloads.gang.flight import AttemptContext, Flight
from holdfast.domain.workloads.gang.reconcile import Intervention, Observed
from holdfast.domain.workloads.orders import RunOrders
from holdfast.ports.requests import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace, Taking
    from holdfast.controller.policy_catalog import PolicyJudge
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Attempt
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.children import CreateChild
    from holdfast.domain.workloads.gang.reconcile import GangOutcome
    from holdfast.ports.store import ControllerStore, Snapshot

_log = logging.getLogger(__name__)
_ASKED = {
    RequestKind.CANCEL: Intervention.CANCEL,
    RequestKind.CANCEL_UNLESS_STARTED: Intervention.CANCEL_UNLESS_STARTED,
    RequestKind.HOLD: Intervention.HOLD,
    RequestKind.RELEASE: Intervention.RELEASE,
    RequestKind.RETRY: Intervention.RETRY,
    RequestKind.PREEMPT: Intervention.PREEMPT,
}
_MOST_GROUPS = 16_384


class Gangs:
    """All jobs that are gangs, of one run or more."""

    name = GANG
    has_pods = False

    def __init__(
        self,
        state: ControllerState,
        store: ControllerStore,
        judging: PolicyJudge,
        *,
        alive: Callable[[str], bool],
        lease_s: float | None,
        pace: Pace,
    ) -> None:
        """Wire it.

        Args:
            state: The controller's state.
            store: Looks up the dependencies of jobs.
            judging: Collects what failures are judged by.
            alive: Whether an executor is known and within its lease.
            lease_s: The lease of executors, in seconds.
            pace: How many jobs a tick handles.
        """
        self.pace = pace
        self._state = state
        self._store = store
        self._judging = judging
        self._groups: BoundedCache[GroupKey] = BoundedCache(_MOST_GROUPS)
        limits = judging.catalog.handler_limits
        self._around = AttemptContext(
            alive, state.nodes.engines, judging.of_gang, limits, state.since, lease_s or 0.0, state.token_digest
        )
        self.changed: Callable[[Job], None] = lambda _: None
        """Called with a job that has an owner and may have changed."""

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Show owned jobs to their owners; jobs and attempts are restored already."""
        del snapshot
        for job in list(self._state.jobs.values()):
            if job.child is not None and job.kind == GANG:
                attempt_anyway(job.id, partial(self.changed, job))

    def admit(self, job: Job) -> None:
        """Show the job to its owner; a pending job is indexed already."""
        if job.child is not None:
            self.changed(job)

    # The rest is for owners.

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Do nothing: it has waited for a place since its submission, and begins once."""

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """Cancel it."""
        del force
        self._ask(self._state.jobs[job_id], now, Intervention.CANCEL, reason="cancelled with its array or job set")

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Hold it, or release it."""
        intervention = Intervention.HOLD if suspended else Intervention.RELEASE
        self._ask(self._state.jobs[job_id], now, intervention, reason=HELD_WITH_OWNER)

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Stop the whole gang: its runs run together."""
        self._ask(self._state.jobs[job_id], now, Intervention(taking.why), reason=taking.reason)

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Do nothing: a gang keeps its size."""

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """Cancel a waiting gang."""
        self._ask(self._state.jobs[job_id], now, Intervention.CANCEL, reason=otherwise)

    # The rest is about pending gangs.

    def index(self, job: Job) -> None:
        """Queue a job that waits for a place, and plan when it is next due."""
        state = self._state
        spec = state.load_spec(job.spec)
        if job.state is JobState.QUEUED and job.id not in state.active:
            ran = job.attempt > 0
            # Only memory and what is avoided ever differ from the specification.
            what = (job.queue, job.spec, job.request.memory, job.avoid_node, job.avoid_devices, job.avoid_nodes, ran)
            group = self._groups.get(what) or self._groups.keep(
                what, GroupKey(job.queue, shape_of(job, spec), ran, of_door=spec.pod is not None)
            )
            state.wait(group, Waiting(-job.priority, job.seq, job.id, job.queued_at, user=job.submitted_by))
        else:
            state.wait_no_more(job.id)
            if spec.after and job.ready_at is None:
                state.waits.watch(job.id, GANG, spec.after, job.met)
        state.queue.wake_at(GANG, job.id, next_due(job, spec))

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Begin an attempt at each job that got its places."""
        state, catalog = self._state, self._judging.catalog
        for key in keys:
            job = state.jobs.get(key)
            # A round began it already, and another job of that round raised an error.
            if job is None or key in state.active:
                continue
            spec, devices = state.load_spec(job.spec), state.capacity.grants.get(key)
            if not job.attempt:  # Computed while it starts, not when it fails.
                catalog.compiled(job, spec)
                catalog.log_patterns(spec)
            waiting, granted = state.unplaced.get(key), zip(places[key], devices or repeat(()), strict=False)
            attempt = None if waiting is None else waiting.attempt
            begun, attempt, look = gang.begin(spec, job, attempt, granted, self._around, now)
            active = state.open(begun, attempt, () if look.flight is None else [*look.flight.runs.values()])
            if job.child is not None:
                self.changed(begun)
            self._carry_out(begun, active, look, now)

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Record why a job still waits for a place; if it will get none, its attempt has failed."""
        if never or self._judging.catalog.catalogue.paused is None:  # Otherwise it waits for no place, and is not late.
            job = self._state.jobs[key]
            waiting = self._state.waiting_attempt(job)
            look = gang.waits(waiting.spec, job, waiting.attempt, self._around, now, never=never)
            self._carry_out(job, waiting, look, now)

    # The rest moves attempts on.

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Advance jobs and their attempts as far as possible now."""
        state = self._state
        for key in keys:
            job = state.jobs.get(key)
            if job is not None:
                self._look(job, now, Observed())

    def ask(self, request: Request, key: str, now: float) -> None:
        """Cancel, hold, release, retry or preempt a job; gangs support no other request."""
        intervention, job = _ASKED.get(request.kind), self._state.jobs[key]
        retried = intervention is Intervention.RETRY
        # A session is retried by its policy alone.
        if intervention is None or (retried and (key in self._state.active or key in self._state.chains)):
            return
        if intervention is Intervention.RETRY and request.payload:
            job = self._with_spec(job, request.payload)
        if intervention is Intervention.RETRY and job.terminal:
            job = self._as_new(job)
        cancels = intervention in {Intervention.CANCEL, Intervention.CANCEL_UNLESS_STARTED}
        reason = request.cancel_reason if cancels else request.reason
        if intervention is Intervention.PREEMPT:
            if not self._runs_on(key, request.payload):
                return
            reason = request.preempt_reason
        self._ask(job, now, intervention, reason=reason)

    def _with_spec(self, job: Job, payload: str) -> Job:
        """Return a job with another specification; if its dependencies changed, the old ones no longer count."""
        changed = self._state.change_spec(job, payload)
        before, after = (self._state.load_spec(dependency.spec).after for dependency in (job, changed))
        same = [(dependency.id, dependency.condition) for dependency in before] == [
            (dependency.id, dependency.condition) for dependency in after
        ]
        return changed if same else evolve(changed, met=(), ready_at=None)

    def _as_new(self, job: Job) -> Job:
        """Let a retried job see the present states of its dependencies, not their earlier ends."""
        spec = self._state.load_spec(job.spec)
        if not any(dependency.outcome for dependency in spec.after):
            return job
        after = tuple(evolve(dependency, outcome="", reason="") for dependency in spec.after)
        return evolve(self._state.change_spec(job, dump_spec(evolve(spec, after=after))), request=job.request)

    def _runs_on(self, key: str, node: str) -> bool:
        """Whether anything of a job is on a node, or on any node if none is named."""
        active = self._state.active.get(key)
        runs = () if active is None else active.runs.values()
        return any(node in {"", run.node} and run.status not in RUN_TERMINAL for run in runs)

    def _ask(self, job: Job, now: float, intervention: Intervention, *, reason: str) -> None:
        """Act on a request; the attempt is advanced with the others."""
        self._look(job, now, Observed(intervention=intervention, reason=reason))
        if job.id in self._state.active:
            self._state.queue.add(GANG, job.id)

    def _look(self, job: Job, now: float, seen: Observed) -> None:
        """Store the next state of a job and its attempt."""
        state, key = self._state, job.id
        active, waiting = state.active.get(key), state.unplaced.get(key)
        spec = state.load_spec(job.spec) if active is None else active.spec
        waits, again = spec.after and job.ready_at is None, False
        if spec.after and job.terminal and seen.intervention is Intervention.RETRY:
            waits = again = True
            state.waits.watch(key, GANG, spec.after, ())
        if again or (waits and seen.intervention is None):
            state.waits.look_up(self._store, state.changes)
            seen = seen._replace(awaited=state.waits.standings(spec.after, () if again else job.met))
        flight = None
        if active is not None:
            flight = Flight(spec, job, active.attempt, active.runs, self._around)
            seen = seen._replace(attempt=active.attempt, interrupted=flight.interrupted)
        elif waiting is not None:
            seen = seen._replace(waiting=waiting.attempt)
        if self._judging.catalog.catalogue.paused is not None:
            seen = seen._replace(paused=True)
        look = gang.reconcile(spec, job, flight, seen, self._around, now)
        self._carry_out(job, active, look, now)
        if waits and look.job is not job and (look.job.terminal or look.job.ready_at is not None):
            state.waits.leave(key, spec.after)

    def _carry_out(self, job: Job, active: Active | None, look: GangOutcome, now: float) -> None:
        """Store the next state of a job and its attempt, and schedule the next look."""
        state, flight, over = self._state, look.flight, None
        # The end of an attempt is emitted before its consequence for the job, and before the loss of its places.
        at_last = bool(look.ended) or (flight is not None and flight.orders.withdraw)
        if not at_last:
            self._put_job(job, look.job)
        if flight is not None and active is not None:
            if flight.raised is not None:
                _log.error("moving an attempt at %s on raised", job.id, exc_info=flight.raised)
            state.carry_out(active, flight.orders)
        for attempt, step in look.ended:
            # An attempt that was never placed and about which nothing was decided has only its history.
            kept = attempt.dispatch > 0 or attempt.decision is not None
            state.steps(active or state.waiting_attempt(job), ((step, attempt),), kept=kept)
            over = attempt if kept else None
        if job.id in state.chains:
            orders = RunOrders() if flight is None else flight.orders
            # The kernels of a session that loses its place wait for other runs.
            moves = [run for run in orders.moves if not orders.withdraw or run.status is not RunStatus.CANCELLED]
            state.follow_session(Followed(look.job, orders.steps, moves, look.ended), now)
        if at_last:
            self._put_job(job, look.job, over)
        if flight is not None and job.id in state.active:
            state.queue.wake_at(GANG, job.id, flight.next_look(now, look.wake_at))
        elif look.job is job:
            state.queue.wake_at(GANG, job.id, look.wake_at)

    def _put_job(self, before: Job, job: Job, ended: Attempt | None = None) -> None:
        if job is not before:
            self._state.put_job(job, ended)
            if job.child is not None:
                self.changed(job)
