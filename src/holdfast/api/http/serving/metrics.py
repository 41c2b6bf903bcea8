"""Counts what the API does, for Prometheus; routes are labelled by template, so the number of series is bounded."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.api.budget import MemoryBudget
    from holdfast.ports.store import QueryStore

_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


class _JobsByState(Collector):
    """Counts the jobs in the store at each scrape."""

    def __init__(self, store: QueryStore) -> None:
        self._store = store

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily("holdfast_jobs", "Jobs by state.", labels=["state"])
        counts = self._store.count_by_state()
        for state in JobState:
            family.add_metric([state], counts.get(state, 0))
        yield family

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Describe the metric without a query."""
        return [GaugeMetricFamily("holdfast_jobs", "Jobs by state.", labels=["state"])]


class _BudgetInUse(Collector):
    """Shows how much of the memory for accepted requests is in use."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def collect(self) -> Iterable[Metric]:
        budget, kept = self._budget, "holdfast_api_accepted"
        yield GaugeMetricFamily(f"{kept}_bytes", "Memory of requests accepted and not yet answered.", budget.used)
        yield GaugeMetricFamily(
            f"{kept}_limit_bytes", "Most memory that such requests may take, at all doors.", budget.size
        )
        yield CounterMetricFamily(f"{kept}_refused", "Requests refused for lack of that memory.", budget.refused)


class Metrics:
    """The API's counters, in a registry that others may add theirs to."""

    def __init__(self, registry: CollectorRegistry, store: QueryStore, budget: MemoryBudget | None = None) -> None:
        self.registry = registry
        self._submitted = Counter("holdfast_jobs_submitted", "Jobs accepted.", registry=registry)
        self._rejected = Counter("holdfast_jobs_rejected", "Manifests refused in submissions.", registry=registry)
        self._requests = Counter(
            "holdfast_api_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "holdfast_api_request_seconds", "Time to answer.", ["method", "route"], registry=registry
        )
        registry.register(_JobsByState(store))
        if budget is not None:
            registry.register(_BudgetInUse(budget))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def count_jobs(self, accepted: int, rejected: int) -> None:
        """Count the jobs of one submission."""
        self._submitted.inc(accepted)
        self._rejected.inc(rejected)

    def text(self) -> bytes:
        """Write everything in the registry in Prometheus' text format."""
        return generate_latest(self.registry)


class MetricsGate:
    """Counts every request, also those refused before they reach an endpoint."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.count(method, route, status, perf_counter() - began)
