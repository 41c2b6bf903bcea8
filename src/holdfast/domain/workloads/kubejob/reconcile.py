"""One look at a Kubernetes Job: its specification, its state and its pods in, the new state and what to do out.

An ending becomes final in two steps: pods that still work are ended first, and ``Failed`` or ``Complete`` follow once
all have gone, with the reason and message of the interim condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, repeat
from typing import TYPE_CHECKING

from holdfast.domain.job import evolve
from holdfast.domain.policy.decide import GLOBAL_LIMIT
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.kubejob.decisions import decisions_about, is_capped
from holdfast.domain.workloads.kubejob.model import (
    JobCondition,
    JobResult,
    KubeJobState,
    PodPhase,
    RestartPolicy,
    StartPod,
    StopPod,
)
from holdfast.domain.workloads.kubejob.tally import has_place, remaining_s, tally, waits_until_gone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod, PodDecision
    from holdfast.domain.workloads.kubejob.tally import Tally


CONTROLLER = "kubernetes.io/job-controller"
"""The ``managedBy`` that means us; a Job managed by anyone else is left alone."""


def reconcile(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float, *, cap: int | None = None
) -> JobResult:
    """Look at a Job once.

    Args:
        spec: What it asks for.
        state: What was remembered after the last look.
        pods: All of its pods as observed now, including ended ones while they are known.
        now: The time.
        cap: The operator's ``globalMaxRetries``: how many failed pods may be replaced; at 0 none is, counted or not.

    Returns:
        The new state, which pods to stop and start, and what was decided about each pod that failed. Store the state
        and the decisions before doing either.
    """
    if state.finished or spec.managed_by not in {None, CONTROLLER}:
        return Result(state=state)
    counted = tally(spec, _started(spec, state, now), pods)
    ending = ending_of(spec, counted, pods, now, cap=cap)
    because = None if ending is None else ending.message
    decisions = tuple(decisions_about(spec, counted, because, now, cap=cap))
    if ending is not None:
        return _ending(counted.state, ending, pods, decisions, now)
    if spec.suspend:
        return _suspended(counted.state, pods, decisions, now)
    return _going_on(spec, counted.state, pods, decisions, now)


def stopped_by(result: JobResult) -> tuple[str, ...]:
    """List the pods a look stops, by name."""
    return tuple(order.name for order in result.orders if isinstance(order, StopPod))


def started_by(result: JobResult) -> tuple[StartPod, ...]:
    """List the pods a look starts."""
    return tuple(order for order in result.orders if isinstance(order, StartPod))


def _started(spec: KubeJobSpec, state: KubeJobState, now: float) -> KubeJobState:
    if spec.suspend or state.started_at is not None:
        return state
    if state.condition("Suspended"):
        state = with_condition(
            state, JobCondition("Suspended", status=False, reason="JobResumed", message="Job resumed", since=now)
        )
    return evolve(state, started_at=now)


def _ending(
    state: KubeJobState, ending: JobEnding, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float
) -> JobResult:
    """End what still runs, and the Job once nothing does."""
    working = [pod.name for pod in pods if pod.active]
    interim, final = ("FailureTarget", "Failed") if ending.failed else ("SuccessCriteriaMet", "Complete")
    state = with_condition(state, _condition(interim, ending, now))
    if working or state.terminating:
        ended = evolve(
            state,
            active=0,
            ready=0,
            terminating=state.terminating + len(working),
            failed=state.failed + len(working),
            counted=state.counted | frozenset(working),
        )
        return Result(state=ended, orders=tuple(map(StopPod, working)), decisions=decisions)
    done = evolve(with_condition(state, _condition(final, ending, now)), finished_at=now)
    return Result(state=done, decisions=decisions)


def _suspended(state: KubeJobState, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float) -> JobResult:
    """Stop every pod and count none of them; the deadline begins anew on resume."""
    condition = JobCondition("Suspended", status=True, reason="JobSuspended", message="Job suspended", since=now)
    stopped = tuple(pod.name for pod in pods if pod.active)
    going = {pod.name for pod in pods if pod.deleting}
    new = evolve(
        with_condition(state, condition),
        started_at=None,
        active=0,
        ready=0,
        terminating=state.terminating + len(stopped),
        counted=state.counted | going | frozenset(stopped),
    )
    return Result(state=new, orders=tuple(map(StopPod, stopped)), decisions=decisions)


def _going_on(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float
) -> JobResult:
    planned = _plan(spec, state, pods, now)
    due = [] if planned.wake_at is None else [planned.wake_at]
    if spec.active_deadline_s is not None and state.started_at is not None:
        due.append(state.started_at + spec.active_deadline_s)
    new = evolve(
        state,
        active=state.active - len(planned.delete) + len(planned.create),
        terminating=state.terminating + len(planned.delete),
        counted=state.counted | frozenset(planned.delete),
    )
    orders: tuple[StartPod | StopPod, ...] = (*map(StopPod, planned.delete), *planned.create)
    return Result(state=new, orders=orders, decisions=decisions, wake_at=min(due, default=None))


def _condition(type_: str, ending: JobEnding, now: float) -> JobCondition:
    return JobCondition(type_, status=True, reason=ending.reason, message=ending.message, since=now)


def with_condition(state: KubeJobState, condition: JobCondition) -> KubeJobState:
    """Return the state with a condition; an unchanged one keeps its time."""
    old = next((one for one in state.conditions if one.type == condition.type), None)
    if old is not None and old.status == condition.status:
        return state
    if old is None:
        return evolve(state, conditions=(*state.conditions, condition))
    return evolve(state, conditions=tuple(condition if one is old else one for one in state.conditions))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to start and stop."""

    create: tuple[StartPod, ...] = ()
    delete: tuple[str, ...] = ()
    wake_at: float | None = None


def _plan(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float) -> _Wanted:
    """Plan the pods of a Job that is neither suspended nor decided."""
    active = [pod for pod in pods if pod.active]
    beyond = [pod for pod in active if not has_place(spec, pod)]
    staying = [pod for pod in active if has_place(spec, pod)]
    want = wanted(spec, state, len(staying))
    if len(staying) >= want:
        surplus = sorted(staying, key=_dispensable)[: len(staying) - want]
        return _Wanted(delete=tuple(pod.name for pod in (*beyond, *surplus)))
    free = want - len(staying) - (state.terminating if waits_until_gone(spec) else 0)
    orders, wake_at = _orders(spec, state, pods, now)
    return _Wanted(tuple(islice(orders, max(0, free))), tuple(pod.name for pod in beyond), wake_at)


def wanted(spec: KubeJobSpec, state: KubeJobState, active: int) -> int:
    """Return how many pods should be active."""
    if spec.completions is None:
        # Running pods drain a work queue; after a success no new one starts.
        return min(active, spec.parallelism) if state.succeeded else spec.parallelism
    left = spec.completions - state.succeeded - len(state.failed_indexes)
    return max(0, min(spec.parallelism, left))


def _dispensable(pod: Pod) -> tuple[bool, int]:
    return pod.ready, -(pod.index or 0)


def _orders(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float
) -> tuple[Iterable[StartPod], float | None]:
    """List what could start now, lowest index first, and when the next one that must wait could."""
    if spec.backoff_limit_per_index is not None:
        return _indexed_with_own_delay(spec, state, pods, now)
    wait = remaining_s(spec.backoff, state.backoff.failures, elapsed_s=now - state.backoff.last_failure_at)
    if wait > 0:
        return (), now + wait
    if not spec.indexed:
        return repeat(StartPod(), spec.parallelism), None
    return map(StartPod, _free_indexes(spec, state, pods)), None


def _indexed_with_own_delay(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float
) -> tuple[list[StartPod], float | None]:
    ready: list[StartPod] = []
    due: list[float] = []
    for index in _free_indexes(spec, state, pods):
        counted, ignored, last = state.index_failures.get(index, (0, 0, 0.0))
        wait = remaining_s(spec.backoff, counted + ignored, elapsed_s=now - last)
        if wait > 0:
            due.append(now + wait)
        else:
            ready.append(StartPod(index, counted, ignored))
    return ready, min(due, default=None)


def _free_indexes(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod]) -> Iterator[int]:
    """Yield the unfinished indexes without an active pod, lowest first."""
    waits = waits_until_gone(spec)
    taken = {pod.index for pod in pods if pod.active or (waits and pod.deleting and not pod.ended)}
    for index in range(spec.completions or 0):
        if index not in taken and index not in state.completed_indexes and index not in state.failed_indexes:
            yield index


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a Job ends."""

    failed: bool
    reason: str
    message: str


BACKOFF_LIMIT = JobEnding(
    failed=True, reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit"
)
DEADLINE = JobEnding(failed=True, reason="DeadlineExceeded", message="Job was active longer than specified deadline")
MAX_FAILED_INDEXES = JobEnding(
    failed=True,
    reason="MaxFailedIndexesExceeded",
    message="Job has exceeded the specified maximal number of failed indexes",
)
FAILED_INDEXES = JobEnding(failed=True, reason="FailedIndexes", message="Job has failed indexes")
COMPLETIONS = JobEnding(failed=False, reason="CompletionsReached", message="Reached expected number of succeeded pods")
FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a Job can have failed, unless its pod failure policy names a reason of its own."""


def ending_of(
    spec: KubeJobSpec, tally: Tally, pods: Sequence[Pod], now: float, *, cap: int | None = None
) -> JobEnding | None:
    """Judge a Job whose pods are counted; ``None`` while it goes on."""
    state = tally.state
    if before := _decided_before(state):
        return before
    late = past_deadline(spec, state, now)
    if late and any(pod.overdue for pod in pods):
        return DEADLINE
    if tally.fatal is not None:
        return JobEnding(failed=True, reason=tally.fatal.reason, message=tally.fatal.message)
    if state.failed > spec.backoff_limit or _restarted_too_often(spec, pods):
        return BACKOFF_LIMIT
    if late or is_capped(tally, cap):
        return DEADLINE if late else evolve(BACKOFF_LIMIT, message=f"{GLOBAL_LIMIT} is {cap}")
    return _lost_indexes(spec, state) or _success(spec, state)


def _decided_before(state: KubeJobState) -> JobEnding | None:
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        if found := state.condition(type_):
            return JobEnding(failed=type_ == "FailureTarget", reason=found.reason, message=found.message)
    return None


def _restarted_too_often(spec: KubeJobSpec, pods: Sequence[Pod]) -> bool:
    """Whether containers were restarted in place as often as the limit says: ``>=``, where failed pods are ``>``."""
    if spec.restart_policy is not RestartPolicy.ON_FAILURE:
        return False
    living = {PodPhase.PENDING, PodPhase.RUNNING}
    restarts = sum(pod.container_restarts for pod in pods if pod.phase in living)
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit


def past_deadline(spec: KubeJobSpec, state: KubeJobState, now: float) -> bool:
    """Whether a Job that is not suspended has reached its active deadline."""
    if spec.suspend or spec.active_deadline_s is None or state.started_at is None:
        return False
    return now - state.started_at >= spec.active_deadline_s


def _lost_indexes(spec: KubeJobSpec, state: KubeJobState) -> JobEnding | None:
    if not spec.indexed or spec.backoff_limit_per_index is None or spec.completions is None:
        return None
    lost = len(state.failed_indexes)
    if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
        return MAX_FAILED_INDEXES
    return FAILED_INDEXES if lost and lost + state.succeeded >= spec.completions else None


def _success(spec: KubeJobSpec, state: KubeJobState) -> JobEnding | None:
    rule = satisfied_rule(spec, state.completed_indexes)
    if rule is not None:
        return JobEnding(failed=False, reason="SuccessPolicy", message=f"Matched rules at index {rule}")
    if spec.completions is None:
        return COMPLETIONS if state.succeeded and not state.active else None
    return COMPLETIONS if state.succeeded >= spec.completions else None


def satisfied_rule(spec: KubeJobSpec, completed: frozenset[int]) -> int | None:
    """Return the first rule of the successPolicy that is satisfied."""
    for place, rule in enumerate(spec.success_rules if spec.indexed else ()):
        done = completed if rule.indexes is None else completed & rule.indexes
        wanted = rule.count if rule.count is not None else len(rule.indexes or ())
        if len(done) >= wanted:
            return place
    return None
