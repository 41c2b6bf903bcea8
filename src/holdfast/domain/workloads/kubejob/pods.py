"""The pods of a job, the facts that reconciling them depends on, and how its Kubernetes Job sees them.

A pod is a place, and the programs that run in it one after the other. ``reconcile_pods`` decides what happens to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.policy.model import Backoff
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import shortage_of
from holdfast.domain.workloads.kubejob.model import Pod, PodPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.judge import Judgement
    from holdfast.domain.workloads.kubejob.program import PodPlan
    from holdfast.domain.workloads.kubejob.records import PodRecord

CRASH_BACKOFF = Backoff(initial_s=10.0, max_s=300.0, multiplier=2.0)
"""The kubelet's: 10 s doubling to five minutes."""


class LivePod(Struct, frozen=True):
    """One pod that has not ended."""

    record: PodRecord
    run: Run | None = None
    """Its program; ``None`` while it waits for a place or to start again."""
    first: str = ""
    """The uid of its first run."""
    request: str = ""
    """Its entry in the pending queue; empty while it does not wait there."""
    kept: Run | None = None
    """The place it keeps while it waits to restart in place, charged separately."""
    last: Run | None = None
    """Its last program, while it waits for the next one."""
    failure: tuple[str, Failure] | None = None
    """The failure of its last program, which is classified once, with the uid of that run."""
    declined: Decision | None = None
    """The decision about its last program, if that does not restart in the pod."""
    shown: tuple[bool, Pod] | None = None
    """How its Job sees it, and whether its Job stopped it."""


class Barrier(NamedTuple):
    """The progress of a set that restarts in place: no pod starts anew before all have reached the barrier."""

    previous: int | None = None
    """The restart that all have left behind; ``None`` before there was any, or where no set is known."""
    current: int | None = None
    """The restart that pods may begin."""
    uncounted: int = 0
    """Restarts that do not count against its ``maxRestarts``."""

    @property
    def first(self) -> int:
        """The restart that a new pod begins with: the one its set has reached or is gathering for."""
        return 0 if self.previous is None else self.previous + 1


def in_place_attempts(pods: Mapping[str, LivePod]) -> tuple[int, ...]:
    """List how often the pods of a job restarted in place, leaving out new pods."""
    records = (pod.record for pod in pods.values())
    return tuple(record.in_place for record in records if record.run or record.in_place)


class TimeLimits(NamedTuple):
    """How long a program may take to stop or start before it is given up."""

    stop_s: float
    start_s: float | None
    """``None`` is no limit."""


class PodFacts(Struct, frozen=True, kw_only=True):
    """The facts that reconciling the pods of a job depends on."""

    job: Job
    attempt: Attempt
    plan: PodPlan
    runs: Mapping[str, Run]
    """The current runs, by uid."""
    barrier: Barrier
    categories: CompiledCategories
    cap: int | None
    """``globalMaxRetries``."""
    patience: TimeLimits
    since: Callable[[float], float]
    """Converts a stored time to this controller's clock, which may have been set back since."""
    fresh_uid: Callable[[int], str]
    """Returns an unused uid for a run of a rank."""
    judging: Callable[[Run], Judgement]
    """Returns what a failed program is judged by; it is expensive, and called once for each."""
    useless: Callable[[Run], bool]
    """Returns whether a kept place is useless: its node drained or short, a device in trouble, or the server paused."""
    backoff: Backoff = CRASH_BACKOFF
    """For ``OnFailure``."""


class SetNotice(NamedTuple):
    """A message for the log of the job's set, about something that the set's rules do not see."""

    type: str
    reason: str
    message: str


DISRUPTION_TARGET = ("DisruptionTarget", "True")
_DISRUPTIONS = frozenset(
    {FailureCondition.PREEMPTED, FailureCondition.EVICTED, FailureCondition.NODE_LOST, FailureCondition.EXECUTOR_LOST}
)
_DISRUPTED_BY = frozenset({EndedBy.PREEMPTION, EndedBy.DRAIN, EndedBy.EVICTION, EndedBy.LOST})
_STOPPED = frozenset({EndedBy.CASCADE, EndedBy.SUSPENSION})
START_ERROR = 128
"""The exit code that Kubernetes reports for a container that could not be started."""


def is_disruption(outcome: RunOutcome) -> bool:
    """Whether the infrastructure failed rather than the program: preempted, evicted, or lost with its node."""
    return outcome.ended_by in _DISRUPTED_BY or bool(outcome.conditions & _DISRUPTIONS)


def failed_by_itself(outcome: RunOutcome) -> bool:
    """Whether a program failed, other than by being stopped with all others or by a shortage of its node."""
    return not outcome.succeeded and outcome.ended_by not in _STOPPED and shortage_of(outcome) is None


def named(outcome: RunOutcome, container: str) -> RunOutcome:
    """Return an outcome whose only container has the name that the pod gives it."""
    containers = outcome.containers
    if len(containers) != 1 or containers[0].name == container:
        return outcome
    return evolve(outcome, containers=(evolve(containers[0], name=container),))


def pod_of(record: PodRecord, run: Run | None, *, container: str, indexed: bool, is_counted: bool) -> Pod:
    """Show a pod as the Job controller would see it.

    Args:
        record: Its stored record.
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
