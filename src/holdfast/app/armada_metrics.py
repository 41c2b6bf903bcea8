"""Counts failures and what became of them under the names of Armada's own metrics, for dashboards that know those.

They count all jobs, whichever way they came in. As people choose the names of queues, policies and nodes, each metric
has at most ``MOST_SERIES`` series; what exceeds that is counted as ``other``.
Source: upstream's metrics of its scheduler and executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from holdfast.domain.events.jobs import (
    AttemptEnded,
    AttemptStatusChanged,
    JobCancelled,
    JobFailed,
    JobQueued,
    JobRetryScheduled,
    JobStarted,
    JobSucceeded,
)
from holdfast.domain.failure import FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client import CollectorRegistry

    from holdfast.domain.events.registry import EventRecord
    from holdfast.domain.job import Attempt, Job

M = TypeVar("M", Counter, Gauge, Histogram)
POOL = "default"
MOST_SERIES = 1_000
OTHER = "other"
_ENGINE = frozenset(
    {
        DecisionCode.RETRY,
        DecisionCode.FAIL_RULE,
        DecisionCode.FAIL_DEFAULT,
        DecisionCode.POLICY_LIMIT,
        DecisionCode.GLOBAL_LIMIT,
        DecisionCode.UNSCHEDULABLE,
    }
)
"""The decisions of upstream's retry engine, which is not asked about the rest."""


class ArmadaMetrics:
    """The counters, in the registry of the server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        of_jobs = ["category", "subcategory"]
        self._decisions = _Bounded(
            Counter(
                "armada_scheduler_retry_policy_decisions",
                "Failures judged by retry policies, while Armada's door is open, as the others of this prefix.",
                ["queue", "pool", "policy", "decision"],
                registry=registry,
            )
        )
        self._categories = _Bounded(
            Counter(
                "armada_executor_job_failure_category",
                "Failed attempts by category, also those that are retried.",
                ["failure_category", "failure_subcategory"],
                registry=registry,
            )
        )
        # Upstream's counters of these names have no suffix, which every counter of this library gets.
        self._by_queue = _Bounded(
            Gauge(
                "armada_scheduler_job_error_classification_by_queue",
                "Jobs that ended as failed, by queue and category; only grows.",
                ["queue", "pool", *of_jobs],
                registry=registry,
            )
        )
        self._by_node = _Bounded(
            Gauge(
                "armada_scheduler_job_error_classification_by_node",
                "Jobs that ended as failed, by node and category; only grows.",
                ["node", "pool", "cluster", *of_jobs],
                registry=registry,
            )
        )
        self._states = _States(registry)
        skipped = "Gangs that no policy was asked about; there are none here, so it has no series."
        Counter("armada_scheduler_retry_policy_gang_skipped", skipped, ["policy"], registry=registry)

    def happened(self, records: Iterable[EventRecord], jobs: Mapping[str, Job]) -> None:
        """Count what a tick committed: its events in order, and the jobs as they are afterwards."""
        for record in records:
            self._states.take(record, jobs)

    def ended(self, attempt: Attempt, job: Job | None) -> None:
        """Count an attempt that ended, and its job if that ended with it."""
        failure, decision, queue = attempt.failure, attempt.decision, "" if job is None else job.queue
        if failure is None:
            return
        category = (failure.category, failure.subcategory)
        self._categories.of(*category).inc()
        if decision is not None and decision.code in _ENGINE:
            self._decisions.of(queue, POOL, decision.policy or "", decision.code.value).inc()
        if job is not None and job.state is JobState.FAILED:
            self._by_queue.of(queue, POOL, *category).inc()
            self._by_node.of(failure.node or "", POOL, failure.executor or "", *category).inc()


class _Placed(Struct, gc=True):
    """A job that has been placed."""

    queue: str
    node: str
    cluster: str
    state: str
    since: float
    asks: tuple[tuple[str, float], ...] = ()
    """The resources that all of its runs together request."""
    preempted: bool = False


class _States:
    """Counts the changes of jobs' states and the time before each, as upstream's scheduler does.

    A job that was placed before the server started counts only from its next placement on.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        moved = ["state", "priorState"]
        of_queue, of_node = ["queue", "pool", *moved], ["node", "pool", "cluster", *moved]
        prefix, grows = "armada_scheduler_job_state", "; only grows."
        words = "Jobs that entered a state, by queue and the state before" + grows
        self._by_queue = _Bounded(Gauge(f"{prefix}_counter_by_queue", words, of_queue, registry=registry))
        words = "Jobs that entered a state, by node and the state before" + grows
        self._by_node = _Bounded(Gauge(f"{prefix}_counter_by_node", words, of_node, registry=registry))
        words = "Seconds in the state before, by queue" + grows
        self._seconds_by_queue = _Bounded(Gauge(f"{prefix}_seconds_by_queue", words, of_queue, registry=registry))
        words = "Seconds in the state before, by node" + grows
        self._seconds_by_node = _Bounded(Gauge(f"{prefix}_seconds_by_node", words, of_node, registry=registry))
        words = "Seconds in the state before, times the requested resources, by {}; only grows."
        of = "resource_seconds_by"
        labels = [*of_queue, "resource"]
        metric = Gauge(f"{prefix}_{of}_queue", words.format("queue"), labels, registry=registry)
        self._resources_by_queue = _Bounded(metric)
        labels = [*of_node, "resource"]
        self._resources_by_node = _Bounded(
            Gauge(f"{prefix}_{of}_node", words.format("node"), labels, registry=registry)
        )
        self._durations = _Bounded(
            Histogram(
                "armada_scheduler_job_run_completed_duration_seconds",
                "How long the last runs of jobs that ended had run.",
                ["queue", "pool"],
                buckets=[2.0**power for power in range(1, 21)],
                registry=registry,
            )
        )
        self._placed: dict[str, _Placed] = {}

    def take(self, record: EventRecord, jobs: Mapping[str, Job]) -> None:
        """Count one event."""
        happened, job_id = record.event, record.job_id or ""
        placed = self._placed.get(job_id)
        if isinstance(happened, JobStarted):
            self._leased(happened, record.at, job_id, jobs.get(job_id))
        elif placed is None:
            self._cancelled_in_queue(record, jobs.get(job_id))
        elif isinstance(happened, AttemptStatusChanged):
            if happened.status == AttemptStatus.RUNNING:
                self._move(placed, "running", record.at)
        elif isinstance(happened, AttemptEnded):
            placed.preempted = FailureCondition.PREEMPTED in happened.conditions
        elif isinstance(happened, JobRetryScheduled | JobQueued):
            del self._placed[job_id]
        elif isinstance(happened, JobSucceeded | JobFailed | JobCancelled):
            del self._placed[job_id]
            self._over(placed, _state_of(happened, placed), record.at)

    def _leased(self, happened: JobStarted, at: float, job_id: str, job: Job | None) -> None:
        if job is None:
            return
        executor, node, _ = happened.places[0] if happened.places else ("", "", 0)
        since = job.queued_at or job.submitted_at
        placed = self._placed[job_id] = _Placed(job.queue, node, executor, "queued", since, _requested(job))
        self._move(placed, "leased", at)

    def _cancelled_in_queue(self, record: EventRecord, job: Job | None) -> None:
        if isinstance(record.event, JobCancelled) and job is not None and not job.attempt:
            placed = _Placed(job.queue, "", "", "queued", job.submitted_at, _requested(job))
            self._move(placed, "cancelled", record.at, pool="")

    def _over(self, placed: _Placed, state: str, at: float) -> None:
        lasted = at - placed.since
        self._move(placed, state, at)
        if lasted > 0:
            self._durations.of(placed.queue, POOL).observe(lasted)

    def _move(self, placed: _Placed, state: str, at: float, pool: str = POOL) -> None:
        before, lasted = placed.state, at - placed.since
        placed.state, placed.since = state, at
        if lasted <= 0:  # upstream leaves these out, too
            return
        self._by_queue.of(placed.queue, pool, state, before).inc()
        self._by_node.of(placed.node, pool, placed.cluster, state, before).inc()
        self._seconds_by_queue.of(placed.queue, pool, state, before).inc(lasted)
        self._seconds_by_node.of(placed.node, pool, placed.cluster, state, before).inc(lasted)
        for name, amount in placed.asks:
            self._resources_by_queue.of(placed.queue, pool, state, before, name).inc(amount * lasted)
            self._resources_by_node.of(placed.node, pool, placed.cluster, state, before, name).inc(amount * lasted)


def _requested(job: Job) -> tuple[tuple[str, float], ...]:
    """Return the resources that a job requests, of those that upstream tracks by default: cores, bytes and GPUs."""
    request = job.request
    amounts = (("cpu", request.cpu_m / 1000), ("memory", float(request.memory)), ("nvidia.com/gpu", request.gpus))
    return tuple([(name, amount * job.gang) for name, amount in amounts if amount])


def _state_of(happened: JobSucceeded | JobFailed | JobCancelled, placed: _Placed) -> str:
    if isinstance(happened, JobSucceeded):
        return "succeeded"
    if isinstance(happened, JobCancelled):
        return "cancelled"
    return "preempted" if placed.preempted else "failed"


class _Bounded(Generic[M]):
    """A metric with a bounded number of series."""

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._series: set[tuple[str, ...]] = set()

    def of(self, *labels: str) -> M:
        """Return the series of these labels, or the one for all beyond the bound."""
        if labels not in self._series and len(self._series) >= MOST_SERIES:
            labels = (OTHER,) * len(labels)
        else:
            self._series.add(labels)
        metric: M = self._metric.labels(*labels)
        return metric
