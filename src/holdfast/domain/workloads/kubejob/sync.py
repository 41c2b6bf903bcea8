"""One look at a Kubernetes Job: its specification, its state and its pods in, the new state and what to do out.

An ending becomes final in two steps: pods that still work are ended first, and ``Failed`` or ``Complete`` follow once
all have gone, with the reason and message of the interim condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.evolve import evolve
from holdfast.domain.workloads.kubejob.ending import ending_of
from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobState, Synced
from holdfast.domain.workloads.kubejob.replacing import plan
from holdfast.domain.workloads.kubejob.tally import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.kubejob.ending import JobEnding
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod

CONTROLLER = "kubernetes.io/job-controller"
"""The ``managedBy`` that means us; a Job managed by anyone else is left alone."""


def sync(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float) -> Synced:
    """Look at a Job once.

    Args:
        spec: What it asks for.
        state: What was remembered after the last look.
        pods: All of its pods as observed now, including ended ones while they are known.
        now: The time.

    Returns:
        The new state, and which pods to start and stop. Store the state before doing either.
    """
    if state.finished or spec.managed_by not in {None, CONTROLLER}:
        return Synced(state=state)
    counted = tally(spec, _started(spec, state, now), pods)
    ending = ending_of(spec, counted, pods, now)
    if ending is not None:
        return _ending(counted.state, ending, pods, now)
    if spec.suspend:
        return _suspended(counted.state, pods, now)
    return _going_on(spec, counted.state, pods, now)


def _started(spec: KubeJobSpec, state: KubeJobState, now: float) -> KubeJobState:
    if spec.suspend or state.started_at is not None:
        return state
    if state.condition("Suspended"):
        state = with_condition(
            state, JobCondition("Suspended", status=False, reason="JobResumed", message="Job resumed", since=now)
        )
    return evolve(state, started_at=now)


def _ending(state: KubeJobState, ending: JobEnding, pods: Sequence[Pod], now: float) -> Synced:
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
        return Synced(state=ended, delete=tuple(working))
    return Synced(state=evolve(with_condition(state, _condition(final, ending, now)), finished_at=now))


def _suspended(state: KubeJobState, pods: Sequence[Pod], now: float) -> Synced:
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
    return Synced(state=new, delete=stopped)


def _going_on(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float) -> Synced:
    planned = plan(spec, state, pods, now)
    due = [] if planned.wake_at is None else [planned.wake_at]
    if spec.active_deadline_s is not None and state.started_at is not None:
        due.append(state.started_at + spec.active_deadline_s)
    new = evolve(
        state,
        active=state.active - len(planned.delete) + len(planned.create),
        terminating=state.terminating + len(planned.delete),
        counted=state.counted | frozenset(planned.delete),
    )
    return Synced(state=new, create=planned.create, delete=planned.delete, wake_at=min(due, default=None))


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
