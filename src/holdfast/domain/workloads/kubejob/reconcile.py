"""Reconciles a Kubernetes Job: its specification, state and pods in, the new state and orders out.

An ending becomes final in two steps: pods that still run are stopped first, and ``Failed`` or ``Complete`` follows once
all are gone, with the reason and message of the interim condition.
"""

from __future__ import annotations

from itertools import filterfalse, islice, repeat
from typing import TYPE_CHECKING

from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import GLOBAL_LIMIT
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.kubejob.model import (
    JobCondition,
    JobResult,
    KubeJobState,
    RestartPolicy,
    StartPod,
    StopPod,
)
from holdfast.domain.workloads.kubejob.tally import (
    as_it_ends,
    decisions_about,
    has_place,
    remaining_s,
    tally,
    waits_until_gone,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod, PodDecision
    from holdfast.domain.workloads.kubejob.tally import Tally


CONTROLLER = "kubernetes.io/job-controller"
"""The ``managedBy`` of Holdfast's Jobs; a Job managed by another controller is left alone."""


def reconcile(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float, *, cap: int | None = None
) -> JobResult:
    """Reconcile a Job once.

    Args:
        spec: The Job's specification.
        state: The state after the last look.
        pods: All of its pods as observed now, including ended ones while they are known.
        now: The time.
        cap: The operator's ``globalMaxRetries``: how many failed pods may be replaced; at 0, none, counted or not.

    Returns:
        The new state, the pods to stop and start, and the decision about each pod that failed. Store the state and the
        decisions before carrying out the orders.
    """
    if state.finished or spec.managed_by not in {None, CONTROLLER}:
        return Result(state=state)
    if state.started_at is None and not spec.suspend:
        if state.condition("Suspended"):
            resumed = JobCondition("Suspended", status=False, reason="JobResumed", message="Job resumed", since=now)
            state = with_condition(state, resumed)
        state = evolve(state, started_at=now)
    counted = tally(spec, state, pods, now)
    decisions = tuple(decisions_about(spec, counted, now, cap=cap)) if counted.failures else ()
    capped = any(decision.code is DecisionCode.GLOBAL_LIMIT for _, decision in decisions)
    ending = ending_of(spec, counted, pods, now, cap=cap if capped else None)
    if ending is not None:
        decisions = tuple(as_it_ends(decisions, ending.message))
        return _ending(counted.state, ending, pods, decisions, now)
    if spec.suspend:
        return _suspended(counted.state, pods, decisions, now)
    return _going_on(spec, counted.state, pods, decisions, now)


def _ending(
    state: KubeJobState, ending: JobEnding, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float
) -> JobResult:
    """Stop the pods that still run, and end the Job once none does.

    As in Kubernetes, pods that still run count as failed at once if the Job has failed, but not if it is complete.
    """
    working = [pod for pod in pods if pod.active]
    stops = tuple([StopPod(pod.name) for pod in working])
    going = [pod.name for pod in working if not pod.idle]
    if ending.failed:
        state = evolve(state, failed=state.failed + len(working))
    interim, final = ("FailureTarget", "Failed") if ending.failed else ("SuccessCriteriaMet", "Complete")
    state = with_condition(
        state, JobCondition(interim, status=True, reason=ending.reason, message=ending.message, since=now)
    )
    state = evolve(state, active=0, ready=0)
    if going or state.terminating:
        ended = evolve(
            state,
            terminating=state.terminating + len(going),
            counted=state.counted.union(going),
            stopped_at_end=state.stopped_at_end.union(going),
        )
        return Result(state=ended, orders=stops, decisions=decisions)
    ended = with_condition(
        state, JobCondition(final, status=True, reason=ending.reason, message=ending.message, since=now)
    )
    return Result(state=evolve(ended, finished_at=now), orders=stops, decisions=decisions)


def _suspended(state: KubeJobState, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float) -> JobResult:
    """Stop every pod without counting any; the deadline restarts on resume."""
    condition = JobCondition("Suspended", status=True, reason="JobSuspended", message="Job suspended", since=now)
    stopped = tuple(StopPod(pod.name) for pod in pods if pod.active)
    stopping = [pod.name for pod in pods if pod.active and not pod.idle]
    going = {pod.name for pod in pods if pod.deleting}
    new = evolve(
        with_condition(state, condition),
        started_at=None,
        active=0,
        ready=0,
        terminating=state.terminating + len(stopping),
        counted=state.counted | going | frozenset(stopping),
    )
    return Result(state=new, orders=stopped, decisions=decisions)


def _going_on(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], decisions: tuple[PodDecision, ...], now: float
) -> JobResult:
    """Start and stop pods of a Job that is neither suspended nor ending."""
    staying: list[Pod] = []
    stopped: list[Pod] = []
    for pod in pods:
        if pod.active:
            if has_place(spec, pod):
                staying.append(pod)
            else:
                stopped.append(pod)
    free = wanted(spec, state, len(staying)) - len(staying)
    created: tuple[StartPod, ...] = ()
    wake_at = None
    if free > 0:
        free -= state.terminating if waits_until_gone(spec) else 0
        orders, wake_at = _orders(spec, state, pods, now)
        created = tuple(islice(orders, max(0, free)))
    elif free < 0:
        stopped += sorted(staying, key=_dispensable)[:-free]
    if spec.active_deadline_s is not None and state.started_at is not None:
        due = state.started_at + spec.active_deadline_s
        wake_at = due if wake_at is None else min(due, wake_at)
    if stopped or created:
        going = [pod.name for pod in stopped if not pod.idle]
        state = evolve(
            state,
            active=state.active - len(stopped) + len(created),
            terminating=state.terminating + len(going),
            counted=state.counted.union(going),
        )
    stops = [StopPod(pod.name) for pod in stopped]
    return Result(state=state, orders=(*stops, *created), decisions=decisions, wake_at=wake_at)


def with_condition(state: KubeJobState, condition: JobCondition) -> KubeJobState:
    """Return the state with a condition; an unchanged condition keeps its time."""
    conditions = list(state.conditions)
    for place, old in enumerate(conditions):
        if old.type == condition.type:
            if old.status == condition.status:
                return state
            conditions[place] = condition
            return evolve(state, conditions=tuple(conditions))
    return evolve(state, conditions=(*conditions, condition))


def wanted(spec: KubeJobSpec, state: KubeJobState, active: int) -> int:
    """Return how many pods should be active."""
    if spec.completions is None:
        # Running pods empty a work queue; after a success no new pod starts.
        return min(active, spec.parallelism) if state.succeeded else spec.parallelism
    left = spec.completions - state.succeeded - len(state.failed_indexes)
    return max(0, min(spec.parallelism, left))


def _dispensable(pod: Pod) -> tuple[bool, int]:
    return pod.ready, -(pod.index or 0)


def _orders(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float
) -> tuple[Iterable[StartPod], float | None]:
    """List the pods that may start now, lowest index first, and when the next delayed one may."""
    per_index = spec.backoff_limit_per_index is not None
    if not per_index:
        wait = remaining_s(spec.backoff, state.backoff.failures, elapsed_s=now - state.backoff.last_failure_at)
        if wait > 0:
            return (), now + wait
        if not spec.indexed:
            return repeat(StartPod(), spec.parallelism), None
    waits = waits_until_gone(spec)
    indexes_taken: set[int | None] = {*state.completed_indexes, *state.failed_indexes}
    for pod in pods:
        if not pod.ended and (waits or not pod.deleting):
            indexes_taken.add(pod.index)
    free = filterfalse(indexes_taken.__contains__, range(spec.completions or 0))
    return _with_own_delay(spec, state, free, now) if per_index else (map(StartPod, free), None)


def _with_own_delay(
    spec: KubeJobSpec, state: KubeJobState, free: Iterable[int], now: float
) -> tuple[list[StartPod], float | None]:
    ready: list[StartPod] = []
    due: list[float] = []
    for index in free:
        counted, ignored, last = state.index_failures.get(index, (0, 0, 0.0))
        wait = remaining_s(spec.backoff, counted + ignored, elapsed_s=now - last)
        if wait > 0:
            due.append(now + wait)
        else:
            ready.append(StartPod(index, counted, ignored))
    return ready, min(due, default=None)


class JobEnding(Struct, frozen=True):
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
"""The reasons of failed Jobs, unless a pod failure policy names its own."""
_DECIDED = ("SuccessCriteriaMet", "FailureTarget")


def ending_of(
    spec: KubeJobSpec, tally: Tally, pods: Sequence[Pod], now: float, *, cap: int | None = None
) -> JobEnding | None:
    """Return how a Job ends, given its counted pods; ``None`` while it continues.

    Args:
        spec: The Job's specification.
        tally: The counted pods.
        pods: The pods as observed.
        now: The time.
        cap: ``globalMaxRetries``, if it forbids replacing a pod that has just failed.
    """
    state, late = tally.state, False
    for before in state.conditions:
        if before.status and before.type in _DECIDED:
            return JobEnding(before.type == "FailureTarget", before.reason, before.message)
    if spec.active_deadline_s is not None and state.started_at is not None and not spec.suspend:
        late = now - state.started_at >= spec.active_deadline_s
        if late and any(pod.overdue for pod in pods):
            return DEADLINE
    if tally.fatal is not None:
        return JobEnding(failed=True, reason=tally.fatal.reason, message=tally.fatal.message)
    if state.failed > spec.backoff_limit or (
        spec.restart_policy is RestartPolicy.ON_FAILURE and _restarted_too_often(spec, pods)
    ):
        return BACKOFF_LIMIT
    if late or cap is not None:
        return DEADLINE if late else evolve(BACKOFF_LIMIT, message=f"{GLOBAL_LIMIT} is {cap}")
    return _by_counts(spec, state)


def _restarted_too_often(spec: KubeJobSpec, pods: Sequence[Pod]) -> bool:
    """Whether restarts of containers reach the limit (``>=``; failed pods must exceed it, ``>``)."""
    restarts = sum(pod.container_restarts for pod in pods if not pod.ended)
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit


def _by_counts(spec: KubeJobSpec, state: KubeJobState) -> JobEnding | None:
    """Return how a Job ends by the numbers of failed and succeeded pods or indexes."""
    if spec.indexed and spec.backoff_limit_per_index is not None and spec.completions is not None:
        lost = len(state.failed_indexes)
        if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
            return MAX_FAILED_INDEXES
        if lost and lost + state.succeeded >= spec.completions:
            return FAILED_INDEXES
    for place, rule in enumerate(spec.success_rules if spec.indexed else ()):
        done = state.completed_indexes if rule.indexes is None else state.completed_indexes & rule.indexes
        needed = rule.count if rule.count is not None else len(rule.indexes or ())
        if len(done) >= needed:
            return JobEnding(failed=False, reason="SuccessPolicy", message=f"Matched rules at index {place}")
    if spec.completions is None:
        return COMPLETIONS if state.succeeded and not state.active else None
    return COMPLETIONS if state.succeeded >= spec.completions else None
