"""Metrics of the loops, and whether they still run.

Values come from what each tick committed, so that they can be checked against the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from holdfast.app.armada_metrics import ArmadaMetrics
from holdfast.domain.events.workloads import JobSetDecided, JobSetEnded
from holdfast.domain.sessions.model import RetryState, SessionResult
from holdfast.domain.sessions.policy import eligible_cause
from holdfast.domain.shortage import Shortage
from holdfast.domain.workloads.jobset.state import JobSet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from holdfast.controller.controller import Ticked
    from holdfast.domain.events.registry import Event
    from holdfast.domain.job import Attempt
    from holdfast.domain.shortage import Short
    from holdfast.ports.store import Changes

STALLED_AFTER_S = 2.0
"""A controller that has not ticked for this long is not ready."""
_TICK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Telemetry:
    """Counters of one controller, in a registry of their own that the API shows."""

    def __init__(self, now: Callable[[], float], doors: Collection[str] = ()) -> None:
        """Register the metrics, including those of the systems whose ``doors`` are open."""
        self.registry = CollectorRegistry()
        self._of_armada = ArmadaMetrics(self.registry) if "armada" in doors else None
        self._of_sessions = _SessionMetrics(self.registry) if "backendai" in doors else None
        self._now = now
        self._ticked_at: float | None = None
        self._refused = False
        self._short: Mapping[str, Short] = {}
        self._ticks = Histogram(
            "holdfast_tick_seconds", "Duration of a controller tick.", buckets=_TICK_BUCKETS, registry=self.registry
        )
        self._refusals = Counter("holdfast_commits_refused", "Ticks refused by the database.", registry=self.registry)
        self._runs = Counter("holdfast_runs_ended", "Runs that ended.", ["status"], registry=self.registry)
        self._attempts = Counter("holdfast_attempts_ended", "Attempts that ended.", ["ending"], registry=self.registry)
        self._decisions = Counter(
            "holdfast_decisions", "Decisions about failures.", ["action", "code", "cause"], registry=self.registry
        )
        self._sets = Counter("holdfast_jobsets_ended", "Job sets that ended.", ["outcome"], registry=self.registry)
        self._quarantined = Gauge(
            "holdfast_quarantined_workloads",
            "Workloads left alone because handling them failed.",
            registry=self.registry,
        )
        words = "Nodes that get no new work because they are short of a resource."
        self._nodes_short = Gauge("holdfast_nodes_short", words, ["of"], registry=self.registry)
        self._notifications = Counter(
            "holdfast_notifications", "Attempts to deliver notifications.", ["outcome"], registry=self.registry
        )
        judged, labels = "Decisions about failed jobs of job sets.", ["action", "granted"]
        self._set_decisions = Counter("holdfast_jobset_decisions", judged, labels, registry=self.registry)
        self._latency = Histogram(
            "holdfast_decision_seconds",
            "From the end of a failed run to its durable decision.",
            buckets=_TICK_BUCKETS,
            registry=self.registry,
        )

    def ticked(
        self, ticked: Ticked, *, short: Mapping[str, Short], quarantined: int, took_s: float, now: float
    ) -> None:
        """Record a tick, the shortages of nodes after it, and the number of quarantined workloads."""
        self._ticked_at, self._refused = now, ticked.refused is not None
        self._ticks.observe(took_s)
        if ticked.refused is not None:
            self._refusals.inc()
        self._quarantined.set(quarantined)
        self._see_short(short)
        self._wrote(ticked.written, now)

    def _wrote(self, written: Changes, now: float) -> None:
        """Count what a tick committed."""
        for attempt in written.attempts.values():
            if attempt.ending is not None:
                self._ended(attempt, now)
                if self._of_armada is not None:
                    self._of_armada.ended(attempt, written.jobs.get(attempt.job_id))
        if self._of_armada is not None:
            self._of_armada.happened(written.events.values(), written.jobs)
        if written.sessions:
            # Sessions go on though the door that they came by is closed.
            self._of_sessions = self._of_sessions or _SessionMetrics(self.registry)
            self._of_sessions.wrote(written)
        for run in written.runs.values():
            if run.outcome is not None:
                self._runs.labels(run.status.value).inc()
        if written.of(JobSet):
            for record in written.events.values():
                self._count(record.event)

    def _see_short(self, short: Mapping[str, Short]) -> None:
        if short or self._short:
            for of in Shortage:
                self._nodes_short.labels(of.value).set(sum(shortness.of is of for shortness in short.values()))
        self._short = short

    def _count(self, event: Event) -> None:
        if isinstance(event, JobSetEnded):
            self._sets.labels(event.outcome).inc()
        elif isinstance(event, JobSetDecided):
            self._set_decisions.labels(event.action or "none", str(event.granted).lower()).inc()

    def _ended(self, attempt: Attempt, now: float) -> None:
        self._attempts.labels(str(attempt.ending)).inc()
        if attempt.decision is not None and attempt.failure is not None:
            self._decisions.labels(attempt.decision.action, attempt.decision.code, attempt.failure.cause).inc()
            self._latency.observe(max(0.0, now - attempt.failure.failed_at))

    def count_notification(self, how: str) -> None:
        """Count one try to deliver a notification."""
        self._notifications.labels(how).inc()

    def ready(self) -> str | None:
        """Return what keeps the loops from working, or ``None``."""
        if self._ticked_at is None:
            return "the controller has not started"
        silent_s = self._now() - self._ticked_at
        if silent_s > STALLED_AFTER_S:
            return f"the controller loop has not run for {silent_s:.0f} s"
        if self._refused:
            return "the database refuses commits"
        return "; ".join(short.in_words(name) for name, short in self._short.items()) or None


class _SessionMetrics:
    """Counts the retries of sessions under the names of the BEP "Native Session Retry"; silenced events count, too."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "Retries of sessions that were scheduled, by the cause of the failure."
        self._scheduled = Counter("bai_session_retry_scheduled", words, ["cause"], registry=registry)
        words = "Sessions that failed with no retries left, by the cause of the last failure."
        self._exhausted = Counter("bai_session_retry_exhausted", words, ["cause"], registry=registry)
        words = "Sessions that succeeded as the retry of another."
        self._succeeded = Counter("bai_session_retry_succeeded", words, registry=registry)

    def wrote(self, written: Changes) -> None:
        """Count what a tick committed about sessions."""
        # A session is written again when its retry begins, but the attempt that ended it only once.
        jobs = {session.job_id for session in written.sessions.values()}
        for attempt in written.attempts.values():
            decision, failure = attempt.decision, attempt.failure
            if attempt.job_id in jobs and decision is not None and decision.counter is not None and failure is not None:
                self._scheduled.labels((eligible_cause(failure.cause) or failure.cause).value).inc()
        for session in written.sessions.values():
            if session.retry_state is RetryState.EXHAUSTED:
                self._exhausted.labels(session.retry_cause or "").inc()
            elif session.retry_count and session.result is SessionResult.SUCCESS:
                self._succeeded.inc()
