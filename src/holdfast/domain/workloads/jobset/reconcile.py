"""Reconciles a job set in passes: its specification, state and jobs in, the new state and orders out.

The order of a pass is upstream's and observable: jobs of previous attempts go; failure beats success; after a failure
nothing is created in the same pass. A pass is idempotent: its orders and the state are connected only by the attempt
numbers of jobs, so the next pass repairs a crash anywhere. Store the state before acting.

Restarting in place (``restart_in_place``): programs restart where they are, because placing hundreds of pods anew takes
longer than the work that is lost. But they belong together: a program that starts while others still run the attempt
before would find peers that are about to be stopped, or none. So they meet at a barrier. Each pod counts its own
attempts, which only grow; a pod whose program fails goes to its next attempt and waits there, with its place. Only two
numbers of the set are shared, and both only grow:

- ``in_place_previous``: every program at this attempt or below must stop. As soon as one pod is at attempt *n*, it is
  *n* - 1; it stops the programs that still run, which is how they learn of the failure, and they come to *n* as well.
- ``in_place_current``: the attempt that may run. It becomes *n* once all pods are at *n*, and only then programs start.

Pods report and are told at different times, some twice, some after a crash of the controller. As no number decreases,
and each step says where to be rather than what to do, a late or repeated report changes nothing. A new pod begins where
the others gather. Missing pods do not hold up the barrier: they have succeeded, or wait for what those at the barrier
hold. A pod that fails before it ever reaches the barrier would restart for ever, so the restarts of any one container
are bounded by the same limit as those of the set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.children import Child, DeleteChild, Forget, Order
from holdfast.domain.workloads.jobset.children import adjust, create, group_statuses, sort
from holdfast.domain.workloads.jobset.failure import judge
from holdfast.domain.workloads.jobset.model import CONTROLLER, DependencyStatus, Operator, RestartStrategy, StartupOrder
from holdfast.domain.workloads.jobset.state import (
    DEADLINE_EXCEEDED,
    FAILED_JOBS,
    REACHED_MAX_RESTARTS,
    GroupStatus,
    JobSetState,
    SetDecision,
    SetEvent,
    Transition,
    completed,
    failed,
    jobs_ready,
    left_failed,
    resumed,
    starting,
    suspended,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.workloads.jobset.children import SortedJobs
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec, ReplicatedJob


SetResult: TypeAlias = "Result[JobSetState, Order, SetEvent, SetDecision]"


def started(group: ReplicatedJob, status: GroupStatus) -> bool:
    """Whether each of its jobs is ready or has ended; being active alone is not started."""
    return status.ready + status.failed + status.succeeded == group.replicas


def dependencies_met(spec: JobSetSpec, group: ReplicatedJob, statuses: Mapping[str, GroupStatus]) -> bool:
    """Whether a replicated job's dependencies have the status it asks for."""
    for dependency in group.depends_on:
        other = spec.by_name[dependency.name]
        status = statuses[other.name]
        if dependency.status is DependencyStatus.COMPLETE and status.succeeded != other.replicas:
            return False
        if dependency.status is DependencyStatus.READY and not started(other, status):
            return False
    return True


class Startup(Struct, frozen=True):
    """Which replicated jobs can have jobs now."""

    allowed: Mapping[str, ReplicatedJob]
    """By name."""
    in_order: bool
    """Whether the set starts in order at all, and is not suspended."""
    done: bool
    """Whether every replicated job has started."""


def startup(spec: JobSetSpec, groups: Sequence[GroupStatus]) -> Startup:
    """Return which replicated jobs may have jobs: in order, up to the first that has not started."""
    statuses = dict(zip(spec.by_name, groups, strict=True))
    in_order = spec.startup is StartupOrder.IN_ORDER and not spec.suspend
    allowed = {}
    for group in spec.replicated_jobs:
        if not dependencies_met(spec, group, statuses):
            continue
        allowed[group.name] = group
        if in_order and not started(group, statuses[group.name]):
            return Startup(allowed, in_order=True, done=False)
    return Startup(allowed, in_order=in_order, done=True)


def counts(spec: JobSetSpec, group: str) -> bool:
    """Whether the jobs of a replicated job count."""
    return not spec.success.targets or group in spec.success.targets


def expected(spec: JobSetSpec) -> int:
    """Say how many jobs must succeed."""
    if spec.success.operator is Operator.ANY:
        return 1
    return sum(group.replicas for group in spec.replicated_jobs if counts(spec, group.name))


def complete(spec: JobSetSpec, succeeded: Sequence[Child]) -> bool:
    """Whether enough jobs have succeeded; a set that has no jobs at all is complete at once."""
    if not spec.replicas:
        return True
    return bool(succeeded) and sum(counts(spec, child.group) for child in succeeded) >= expected(spec)


class InPlace(Struct, frozen=True):
    """What the pods of a set report."""

    attempts: tuple[int | None, ...]
    """Of each pod; ``None`` before it has reported."""
    container_restarts: int = 0
    """The most restarts of any one container: one that fails too early never reaches the barrier."""


def expected_pods(spec: JobSetSpec) -> int:
    """Say how many pods must meet at the barrier."""
    return sum(group.replicas * group.job.parallelism for group in spec.replicated_jobs)


def restart_in_place(
    spec: JobSetSpec, policy: FailurePolicy, state: JobSetState, seen: InPlace, now: float
) -> Transition:
    """Move the barrier to where the pods are."""
    attempts = [attempt for attempt in seen.attempts if attempt is not None]
    latest = max(attempts, default=0)
    uncounted = state.restarts - state.restarts_counted
    if seen.container_restarts > policy.max_restarts or latest - uncounted > policy.max_restarts:
        return failed(state, *REACHED_MAX_RESTARTS, now)
    if len(attempts) == expected_pods(spec) and len(set(attempts)) == 1:
        return Transition(evolve(state, in_place_current=latest))
    if latest == 0:
        return Transition(state)
    before = state.in_place_previous
    return Transition(evolve(state, in_place_previous=latest - 1 if before is None else max(before, latest - 1)))


_MOST_PASSES = 9
"""More than any set needs until it is stable: a decision, what follows from it, and one pass that changes nothing."""


class ReconcileInput(Struct, frozen=True):
    """The inputs of a pass besides the set and its jobs."""

    now: float
    restarts_allowed: bool = True
    """The operator's kill switch: False when ``globalMaxRetries`` is 0."""
    in_place: InPlace | None = None
    """The reports of pods that restart in place."""


def converge(spec: JobSetSpec, state: JobSetState, children: Sequence[Child], look: ReconcileInput) -> SetResult:
    """Make passes until one decides nothing, and return their joint result.

    Decisions of the first pass and the orders that follow are stored together, before any order is carried out.

    Args:
        spec: What the set asks for, as of now.
        state: What was remembered after the last look.
        children: All of its jobs as observed now.
        look: The time and the other inputs.
    """
    last: SetResult = Result(state=state)
    if spec.managed_by not in {None, CONTROLLER}:
        return last
    orders: dict[Order, None] = {}
    events: list[SetEvent] = []
    decisions: list[SetDecision] = []
    for _ in range(_MOST_PASSES):
        before = last.state
        last = _Passing(spec, before, children, look).run()
        orders.update(dict.fromkeys(last.orders))
        events += last.events
        decisions += last.decisions
        if not last.decisions and last.state.terminal is before.terminal:
            break
    return Result(
        state=last.state,
        orders=tuple(orders),
        events=tuple(events),
        decisions=tuple(decisions),
        wake_at=last.wake_at,
        expires_at=last.expires_at,
    )


class _Passing:
    """A pass in progress."""

    def __init__(self, spec: JobSetSpec, state: JobSetState, children: Sequence[Child], look: ReconcileInput) -> None:
        self._spec, self._look, self._now = spec, look, look.now
        self._jobs: SortedJobs = sort(spec, state, children)
        started_at = state.started_at
        if started_at is None and not spec.suspend:
            started_at = look.now
        pending = dict(state.not_before)
        for key, at in state.not_before.items():
            if at <= look.now:
                del pending[key]
        groups = group_statuses(spec, self._jobs)
        self._state = evolve(state, groups=groups, started_at=started_at, not_before=pending)
        self._orders: list[Order] = []
        self._events: list[SetEvent] = []
        self._decisions: tuple[SetDecision, ...] = ()
        self._due: list[float] = []
        self._expires_at: float | None = None

    def run(self) -> SetResult:
        """Take the steps in upstream's order."""
        if self._state.terminal:
            self._after_the_end()
        else:
            if self._jobs.previous:
                self._delete(self._jobs.previous)
                self._jobs.delete_previous()
            self._note_readiness()
            self._decide()
        wake_at = None
        for at in self._due:
            if at > self._now and (wake_at is None or at < wake_at):
                wake_at = at
        return Result(
            state=self._state,
            orders=tuple(self._orders),
            events=tuple(self._events),
            decisions=self._decisions,
            wake_at=wake_at,
            expires_at=self._expires_at,
        )

    def _turn(self, turned: Transition) -> None:
        self._state = turned.state
        self._events += turned.events

    def _delete(self, children: Iterable[Child]) -> None:
        """Delete jobs, each once; by force those that take too long."""
        patience = self._spec.kill_timeout_s
        for child in children:
            if child.deleting_since is None:
                self._orders.append(DeleteChild(child.name))
                if patience is not None and not child.at_once:
                    self._due.append(self._now + patience)
            elif patience is not None:
                due = child.deleting_since + patience
                self._due.append(due)
                if due <= self._now:
                    self._orders.append(DeleteChild(child.name, force=True))

    def _after_the_end(self) -> None:
        """Delete jobs that still run, keep those that have ended, and the set itself for its time to live."""
        self._delete((*self._jobs.previous, *self._jobs.active))
        if self._spec.ttl_s is None or self._state.ended_at is None:
            return
        due = self._expires_at = self._state.ended_at + self._spec.ttl_s
        self._due.append(due)
        if due <= self._now:
            self._orders.append(Forget())

    def _note_readiness(self) -> None:
        ready = not self._spec.suspend and not self._jobs.previous
        for group, status in zip(self._spec.replicated_jobs, self._state.groups, strict=True):
            ready = ready and status.ready + status.succeeded == group.replicas
        since_before = self._state.healthy_since
        since = None if not ready else self._now if since_before is None else since_before
        if since != self._state.healthy_since:
            self._state = evolve(self._state, healthy_since=since)
        if ready:
            self._turn(jobs_ready(self._state, self._now))
            self._give_back(self._state.healthy_since)

    def _give_back(self, healthy_since: float | None) -> None:
        """Give the budget back after a healthy period."""
        policy = self._spec.failure
        counted = self._state.counted
        if policy is None or policy.reset_after_s is None or healthy_since is None or counted == self._state.forgiven:
            return
        due = healthy_since + policy.reset_after_s
        self._due.append(due)
        if due <= self._now:
            self._state = evolve(self._state, forgiven=counted, counted_at=(), blamed={})

    def _decide(self) -> None:
        """Judge what has failed, end a set that is complete or overdue, or go on."""
        spec, state, now = self._spec, self._state, self._now
        if self._jobs.failed:
            judged = judge(spec, state, self._jobs.failed, now, restarts_allowed=self._look.restarts_allowed)
            self._state, self._decisions = judged.state, judged.decisions
            self._events += judged.events
            return
        if complete(spec, self._jobs.succeeded):
            self._turn(completed(state, now))
            return
        if spec.total_deadline_s is not None and state.started_at is not None:
            due = state.started_at + spec.total_deadline_s
            self._due.append(due)
            if due <= now:
                self._turn(failed(state, *DEADLINE_EXCEEDED, now))
                return
        self._go_on()

    def _go_on(self) -> None:
        """Create what is missing, suspend or resume, and end a set that has nothing left to run."""
        allowed = startup(self._spec, self._state.groups)
        created = create(self._spec, self._state, self._jobs, allowed.allowed.values())
        self._orders += created.orders
        self._due += self._state.not_before.values()
        self._orders += adjust(self._spec, self._jobs, allowed.allowed)
        if self._spec.suspend:
            self._turn(suspended(self._state, self._now))
            return
        if self._state.holds("Suspended") and (allowed.done or not allowed.in_order):
            self._turn(resumed(self._state, self._now))
        if allowed.in_order:
            self._turn(starting(self._state, self._now, done=allowed.done))
        policy, seen = self._spec.failure, self._look.in_place
        if policy is not None and policy.strategy is RestartStrategy.IN_PLACE and seen is not None:
            self._turn(restart_in_place(self._spec, policy, self._state, seen, self._now))
        if created.missing or self._jobs.previous:
            return
        for child in self._jobs.active:
            # Suspended jobs whose dependencies can no longer be met have nothing to wait for.
            if not child.suspended or child.group in allowed.allowed:
                return
        self._nothing_left()

    def _nothing_left(self) -> None:
        """End a set with nothing left to do: failed if jobs were left failed, else complete."""
        if not self._jobs.left:
            self._turn(completed(self._state, self._now))
            return
        message = left_failed([child.name for child in self._jobs.left])
        self._turn(failed(self._state, FAILED_JOBS[0], message, self._now))
