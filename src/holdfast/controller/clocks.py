"""Measures waiting times although clocks get adjusted.

Stored times come from a wall clock, perhaps on another machine. Giving up on a program too early runs it twice, and a
retry must not wait an hour longer because the clock jumped by an hour.

- If the clock is set forward while this process runs, waiting counts from the start of this process at the earliest,
  and the step does not count (``Patience``).
- If it was set back before this process started, stored times may lie in the future. A running process does not follow
  such a clock, but the next one does; so each stored delay lasts at most its whole length from the start of this
  process (``in_our_time``, ``retried_sooner``).

Deadlines stay as people read them: if they were counted anew, setting the clock right would end work too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.records import KubeJobRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.kubejob.records import PodRecord
    from holdfast.ports.clock import SteadyClock
    from holdfast.ports.store import Snapshot


E = TypeVar("E", "Attempt", "Run")


def in_our_time(stored: Snapshot, now: float) -> Snapshot:
    """Return a stored record with no delay that begins later than now; for jobs see ``retried_sooner``."""
    runs = {run.uid: run for run in stored.runs if run.decision is not None}
    return evolve(
        stored,
        attempts=[_entered(attempt, now) for attempt in stored.attempts],
        runs=[_entered(run, now) for run in stored.runs],
        workloads={key: _workload(workload, runs, now) for key, workload in stored.workloads.items()},
    )


def retried_sooner(stored: Snapshot, now: float) -> Iterator[Job]:
    """Yield the jobs whose retry is to come earlier than stored: after the whole delay from now."""
    for job in stored.jobs:
        if job.state is JobState.BACKOFF and job.retry_at is not None and job.updated_at > now:
            yield evolve(job, retry_at=_due(job.retry_at, job.updated_at, now), updated_at=now)


def _due(due: float, since: float, now: float) -> float:
    """Return the due time of a delay whose beginning may lie in the future."""
    return due - max(0.0, since - now)


def _entered(entity: E, now: float) -> E:
    return evolve(entity, status_since=now) if entity.status_since > now else entity


def _workload(stored: Workload, runs: Mapping[str, Run], now: float) -> Workload:
    if isinstance(stored, KubeJobRecord):
        return _job_of_pods(stored, runs, now)
    if isinstance(stored, JobSet) and stored.updated_at > now:
        return _set(stored, now)
    return stored


def _job_of_pods(stored: KubeJobRecord, runs: Mapping[str, Run], now: float) -> KubeJobRecord:
    state, pods = stored.state, tuple(_pod(pod, runs.get(pod.run), now) for pod in stored.pods)
    failures = [state.backoff.last_failure_at, *(last for _, _, last in state.index_failures.values())]
    if pods == stored.pods and max(failures) <= now:
        return stored
    state = evolve(
        state,
        backoff=evolve(state.backoff, last_failure_at=min(state.backoff.last_failure_at, now)),
        index_failures={
            index: (counted, ignored, min(last, now))
            for index, (counted, ignored, last) in state.index_failures.items()
        },
    )
    return evolve(stored, state=state, pods=pods)


def _pod(pod: PodRecord, run: Run | None, now: float) -> PodRecord:
    if pod.due is None or run is None or run.decision is None or pod.due <= now + run.decision.delay_s:
        return pod
    return evolve(pod, due=now + run.decision.delay_s)


def _set(stored: JobSet, now: float) -> JobSet:
    state = stored.state
    ahead_s = stored.updated_at - now
    state = evolve(
        state,
        healthy_since=None if state.healthy_since is None else min(state.healthy_since, now),
        counted_at=tuple(min(at, now) for at in state.counted_at),
        not_before={key: due - ahead_s for key, due in state.not_before.items()},
        streaks={key: evolve(streak, due=streak.due - ahead_s) for key, streak in state.streaks.items()},
    )
    return evolve(stored, state=state)


_A_STEP_S = 0.1
"""A larger jump of the clock counts as a step, a smaller one as inaccuracy."""
_MOST_STEPS = 64


class Patience:
    """Tells since when something has been waiting, as far as this process can vouch for it; see the module.

    The time a status was entered is stored by a wall clock, perhaps of another machine, and clocks get adjusted. Giving
    up on a program too early runs it twice, so time counts at the earliest from the start of this process, and a step
    of its clock does not count.
    """

    def __init__(self, clock: SteadyClock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._ahead = self._began - clock.steady()
        self._steps: list[tuple[float, float]] = []
        """Forward steps of the clock: the reading after each, and its size."""

    def look(self, now: float) -> None:
        """Notice whether the clock was set forward; within a process it never goes back."""
        ahead = now - self._clock.steady()
        if ahead - self._ahead > _A_STEP_S:
            self._steps = [*self._steps[1 - _MOST_STEPS :], (now, ahead - self._ahead)]
            self._ahead = ahead

    def since(self, entered: float) -> float:
        """Return since when a status entered at that time has been waiting, by today's clock."""
        began = max(entered, self._began)
        return began + sum(step_s for at, step_s in self._steps if began < at) if self._steps else began
