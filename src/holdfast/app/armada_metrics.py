"""Counts failures and what became of them under the names of Armada's own metrics, for dashboards that know those.

They are of all jobs, whichever way they came in. Names of queues, policies and nodes are people's to choose, so each
metric keeps so many series and no more; what is new beyond that is counted as ``other``.
Source: upstream's metrics of its scheduler and executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from holdfast.domain.job import JobState
from holdfast.domain.policy.model import DecisionCode

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from holdfast.domain.job import Attempt, Job

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
"""What upstream's retry engine can decide; it is not asked about the rest."""


class ArmadaMetrics:
    """The counters, in the registry of the server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register them."""
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
        skipped = "Gangs that no policy was asked about; there are none here, so it has no series."
        Counter("armada_scheduler_retry_policy_gang_skipped", skipped, ["policy"], registry=registry)

    def ended(self, attempt: Attempt, job: Job | None) -> None:
        """Count an attempt that ended, and its job if that ended with it."""
        failure, decision, queue = attempt.failure, attempt.decision, "" if job is None else job.queue
        if failure is None:
            return
        category = (failure.category, failure.subcategory)
        self._categories.count(*category)
        if decision is not None and decision.code in _ENGINE:
            self._decisions.count(queue, POOL, decision.policy or "", decision.code.value)
        if job is not None and job.state is JobState.FAILED:
            self._by_queue.count(queue, POOL, *category)
            self._by_node.count(failure.node or "", POOL, failure.executor or "", *category)


class _Bounded:
    """A metric of which there are only so many series."""

    def __init__(self, metric: Counter | Gauge) -> None:
        self._metric = metric
        self._known: set[tuple[str, ...]] = set()

    def count(self, *labels: str) -> None:
        if labels not in self._known and len(self._known) >= MOST_SERIES:
            labels = (OTHER,) * len(labels)
        else:
            self._known.add(labels)
        self._metric.labels(*labels).inc()
