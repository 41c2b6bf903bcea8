"""GET /summary, /overview and /job-names: what became of many jobs, how everything is now, what jobs are called."""

import re
from typing import Annotated, Any

from holdfast.api.http.endpoints.endpoint import LONGEST_NAME, MOST_FILTERS, Endpoints, Param, Word
from holdfast.domain.audit import Caller
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.overview import Latest
from holdfast.service.operations.arrays import ArrayOperations
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.filters import read_states
from holdfast.service.operations.overview import Figures, JobUsage, Overview, Share, Total
from holdfast.wire.base import timestamp
from holdfast.wire.figures import (
    FailureTotal,
    JobNames,
    NodeTotal,
    OverviewView,
    QueueLoad,
    SummaryView,
    UsageReport,
    UsageView,
)
from holdfast.wire.render_arrays import array_view
from holdfast.wire.render_catalogue import device_views, node_views
from holdfast.wire.render_jobs import job_outcome

_FIGURES = Endpoints("summary")
ENDPOINTS = (_FIGURES,)

DAY_S = 86_400
_LONGEST_S = 3650 * DAY_S
_LISTED, _MOST_LISTED = 50, 500
_MOST_NAMES = 200
_DIGITS = 6
_NO_QUOTES = re.compile(r'[^"\\\x00-\x1f]+')


@_FIGURES.add("GET", "/summary", SummaryView, summary="Summarize the outcomes of jobs")
def get_summary(
    backend: Backend,
    by: Caller,
    *,
    within_s: Annotated[int, Param("How far back to look, in seconds.", ge=1, le=_LONGEST_S)] = DAY_S,
    queue: Word = None,
    label: Annotated[list[str] | None, Param("Each as `key=value`; all must hold.", max_length=MOST_FILTERS)] = None,
) -> SummaryView:
    """Sum up jobs that go on or ended in that time, their failures, what these cost, and how fast jobs recovered."""
    _, labels = read_states((), label or (), ())
    return _view(Overview(backend).summary(by, within_s=within_s, queue=queue, labels=labels))


@_FIGURES.add("GET", "/report", UsageReport, summary="Report who used how much")
def get_report(
    backend: Backend,
    by: Caller,
    share: Annotated[Share, Param("By what it is reported.")],
    *,
    label: Annotated[str | None, Param("With `share=label`: which one.", max_length=LONGEST_NAME)] = None,
    within_s: Annotated[int, Param("How far back to look, in seconds.", ge=1, le=_LONGEST_S)] = 30 * DAY_S,
) -> UsageReport:
    """Report the hours of CPUs, memory and GPUs that runs had, and what of that failed attempts wasted.

    What retention has deleted is not counted.
    """
    if (label is not None) is not (share is Share.LABEL):
        raise InvalidRequest(problems=[Problem("query.label", "goes with share=label, and only with that")])
    if label is not None and not _NO_QUOTES.fullmatch(label):
        raise InvalidRequest(problems=[Problem("query.label", f"{label!r} is not a label name")])
    scope, found = Overview(backend).usage(by, share, within_s=within_s, label=label or "")
    return UsageReport(since=timestamp(scope.since), until=timestamp(scope.until), items=[*map(_used, found)])


def _used(one: JobUsage) -> UsageView:
    hours = {
        "cpu_hours": one.had.cpu,
        "memory_gib_hours": one.had.memory,
        "gpu_hours": one.had.gpu,
        "wasted_cpu_hours": one.wasted.cpu,
        "wasted_memory_gib_hours": one.wasted.memory,
        "wasted_gpu_hours": one.wasted.gpu,
    }
    rounded = {name: round(value, _DIGITS) for name, value in hours.items()}
    return UsageView(name=one.name, runs=one.runs, failed_runs=one.failed, **rounded)


@_FIGURES.add("GET", "/overview", OverviewView, summary="Show the current state of everything")
def get_overview(
    backend: Backend,
    by: Caller,
    *,
    limit: Annotated[int, Param("Jobs in each list.", ge=1, le=_MOST_LISTED)] = _LISTED,
    named: Annotated[str | None, Param("What the names of listed jobs contain.", max_length=LONGEST_NAME)] = None,
) -> OverviewView:
    """Count jobs by state and queue, show nodes and devices, and list jobs that run, wait for a retry or failed."""
    found = Overview(backend).now(by, limit=limit, named=named or "")
    holders = [run for run in found.runs if run.devices]
    outcomes = {
        job.id: job_outcome(job, found.latest.get(job.id, Latest())) for job in (*found.running, *found.failing)
    }
    return OverviewView(
        at=timestamp(backend.clock.now()),
        jobs=dict(found.jobs),
        queues=[QueueLoad(queue=queue, jobs=dict(jobs)) for queue, jobs in found.queues.items()],
        nodes=node_views(found.nodes, found.runs, found.cordons),
        devices=device_views(found.nodes, holders, found.held_by),
        arrays=[array_view(one) for one in ArrayOperations(backend).going_on(by, (*found.running, *found.failing))],
        running=[outcomes[job.id] for job in found.running],
        failing=[outcomes[job.id] for job in found.failing],
    )


@_FIGURES.add("GET", "/job-names", JobNames, summary="List job names")
def list_names(
    backend: Backend,
    by: Caller,
    *,
    prefix: Annotated[str, Param("What they begin with.", max_length=LONGEST_NAME)] = "",
    limit: Annotated[int, Param(ge=1, le=_MOST_NAMES)] = _MOST_NAMES,
) -> JobNames:
    """List names that begin so, each once and in order, of jobs that belong to no job set or array."""
    return JobNames(items=[*Overview(backend).names(by, prefix, limit=limit)])


def _view(found: Figures) -> SummaryView:
    return SummaryView(
        since=timestamp(found.scope.since),
        until=timestamp(found.scope.until),
        jobs=dict(found.jobs),
        attempts=found.attempts,
        retries=found.retries,
        failures=[FailureTotal(kind=one.name, **_counts(one)) for one in found.by_kind],
        nodes=[NodeTotal(node=one.name, **_counts(one)) for one in found.by_node],
        failed=sum(one.count for one in found.failures),
        ran_s=round(found.ran_s, 3),
        productive_s=round(found.productive_s, 3),
        wall_s=round(found.wall_s, 3),
        lost_s=round(found.lost_s, 3),
        ettr=None if found.ettr is None else round(found.ettr, 4),
        recoveries=found.recoveries.count,
        mean_recovery_s=None if found.recoveries.mean_s is None else round(found.recoveries.mean_s, 3),
    )


def _counts(one: Total) -> dict[str, Any]:
    return {"count": one.count, "lost_s": round(one.lost_s, 3)}
