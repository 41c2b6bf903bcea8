"""Turns the runs of a job into the pods a Kubernetes Job would see, and says which endings are disruptions.

A pod is a place and the programs that run in it one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.shortage import met
from holdfast.domain.workloads.kubejob.model import Pod, PodPhase

if TYPE_CHECKING:
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.workloads.kubejob.stored import PodRecord

DISRUPTION_TARGET = ("DisruptionTarget", "True")
_DISRUPTIONS = frozenset(
    {FailureCondition.PREEMPTED, FailureCondition.EVICTED, FailureCondition.NODE_LOST, FailureCondition.EXECUTOR_LOST}
)
_DISRUPTED_BY = frozenset({EndedBy.PREEMPTION, EndedBy.DRAIN, EndedBy.EVICTION, EndedBy.LOST})
_STOPPED = frozenset({EndedBy.CASCADE, EndedBy.SUSPENSION})
START_ERROR = 128
"""What Kubernetes reports of a container that could not be started."""


def is_disruption(outcome: RunOutcome) -> bool:
    """Whether the place failed and not the program: preempted, evicted, or lost with its node."""
    return outcome.ended_by in _DISRUPTED_BY or bool(outcome.conditions & _DISRUPTIONS)


def failed_by_itself(outcome: RunOutcome) -> bool:
    """Whether a program failed, and not because all of them were stopped, or its node was short of something."""
    return not outcome.succeeded and outcome.ended_by not in _STOPPED and met(outcome) is None


def named(outcome: RunOutcome, container: str) -> RunOutcome:
    """Return an outcome whose one container has the name that the pod gives it."""
    containers = outcome.containers
    if len(containers) != 1 or containers[0].name == container:
        return outcome
    return evolve(outcome, containers=(evolve(containers[0], name=container),))


def pod_of(record: PodRecord, run: Run | None, *, container: str, indexed: bool, is_counted: bool) -> Pod:
    """Show a pod as the Job controller would see it.

    Args:
        record: What is remembered of it.
        run: Its current or last program; ``None`` while it waits for a place or for its program to restart.
        container: Name of its container.
        indexed: Whether pods of its Job have indexes.
        is_counted: Whether its Job stopped it; a program may also be stopped to restart in place.
    """
    ended = run is not None and run.status in RUN_TERMINAL
    outcome = run.outcome if run is not None and ended else None
    containers: tuple[ContainerResult, ...] = ()
    disrupted = outcome is not None and is_disruption(outcome)
    if outcome is not None:
        containers = named(outcome, container).containers
        if not containers and not outcome.started and not disrupted:
            containers = (ContainerResult(START_ERROR, name=container, reason="StartError", message=outcome.message),)
    # A pod whose program restarts in place is not pending: its containers are.
    phase = PodPhase.RUNNING if (record.run if run is None else run.started_at is not None) else PodPhase.PENDING
    if ended:
        phase = PodPhase.SUCCEEDED if outcome is not None and outcome.succeeded else PodPhase.FAILED
    # The kubelet counts a restart when the program starts again, after its back-off.
    due = run is None or run.started_at is None
    return Pod(
        name=record.name,
        phase=phase,
        index=record.rank if indexed else None,
        ready=run is not None and run.status is RunStatus.RUNNING,
        deleting=is_counted and run is not None and run.status is RunStatus.TERMINATING,
        idle=run is None,
        containers=containers,
        conditions=frozenset({DISRUPTION_TARGET}) if disrupted else frozenset(),
        container_restarts=record.restarts - due if record.restarts else 0,
        index_failures=record.index_failures,
        index_ignored=record.index_ignored,
        finished_at=(run.ended_at or run.status_since) if run is not None and ended else 0.0,
        overdue=outcome is not None and outcome.ended_by is EndedBy.DEADLINE,
    )
