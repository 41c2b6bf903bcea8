"""GET /summary, /report, /overview and /job-names: figures about many jobs, the current state, and names of jobs."""

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
    caller: Caller,
    *,
    within_s: Annotated[int, Param("How far back to look, in seconds.", ge=1, le=_LONGEST_S)] = DAY_S,
    queue: Word = None,
    label: Annotated[list[str] | None, Param("Each as `key=value`; all must hold.", max_length=MOST_FILTERS)] = None,
) -> SummaryView:
    """Sum up jobs that are active or ended in that time: their failures, the time lost, and how fast jobs recovered."""
    _, labels = read_states((), label or (), ())
    return _summary_view(Overview(backend).summary(caller, within_s=within_s, queue=queue, labels=labels))


@_FIGURES.add("GET", "/report", UsageReport, summary="Report the use of resources")
def get_report(
    backend: Backend,
    caller: Caller,
    share: Annotated[Share, Param("What to group by.")],
    *,
    label: Annotated[str | None, Param("The label to group by, with `share=label`.", max_length=LONGEST_NAME)] = None,
    within_s: Annotated[int, Param("How far back to look, in seconds.", ge=1, le=_LONGEST_S)] = 30 * DAY_S,
) -> UsageReport:
    """Report the CPU, memory and GPU hours of runs, and how many of them failed attempts wasted.

    Jobs that retention has deleted are not counted.
    """
    if (label is not None) is not (share is Share.LABEL):
        raise InvalidRequest(
            problems=[Problem("query.label", "is required with share=label, and not allowed otherwise")]
        )
    if label is not None and not _NO_QUOTES.fullmatch(label):
        raise InvalidRequest(problems=[Problem("query.label", f"{label!r} is not a label name")])
    scope, usages = Overview(backend).usage(caller, share, within_s=within_s, label=label or "")
    return UsageReport(since=timestamp(scope.since), until=timestamp(scope.until), items=[*map(_usage_view, usages)])


def _usage_view(usage: JobUsage) -> UsageView:
    hours = {
        "cpu_hours": usage.had.cpu,
        "memory_gib_hours": usage.had.memory,
        "gpu_hours": usage.had.gpu,
        "wasted_cpu_hours": usage.wasted.cpu,
        "wasted_memory_gib_hours": usage.wasted.memory,
        "wasted_gpu_hours": usage.wasted.gpu,
    }
    rounded = {name: round(value, _DIGITS) for name, value in hours.items()}
    return UsageView(name=usage.name, runs=usage.runs, failed_runs=usage.failed, **rounded)


@_FIGURES.add("GET", "/overview", OverviewView, summary="Show the current state of everything")
def get_overview(
    backend: Backend,
    caller: Caller,
    *,
    limit: Annotated[int, Param("Jobs in each list.", ge=1, le=_MOST_LISTED)] = _LISTED,
    named: Annotated[str | None, Param("List only jobs whose names contain this.", max_length=LONGEST_NAME)] = None,
) -> OverviewView:
    """Count jobs by state and queue, show nodes and devices, and list jobs that run, wait for a retry or failed."""
    overview = Overview(backend).now(caller, limit=limit, named=named or "")
    holders = [run for run in overview.runs if run.devices]
    outcomes = {
        job.id: job_outcome(job, overview.latest.get(job.id, Latest()))
        for job in (*overview.running, *overview.failing)
    }
    return OverviewView(
        at=timestamp(backend.clock.now()),
        jobs=dict(overview.jobs),
        queues=[QueueLoad(queue=queue, jobs=dict(jobs)) for queue, jobs in overview.queues.items()],
        nodes=node_views(overview.nodes, overview.runs, overview.cordons),
        devices=device_views(overview.nodes, holders, overview.held_by),
        arrays=[
            array_view(array)
            for array in ArrayOperations(backend).going_on(caller, (*overview.running, *overview.failing))
        ],
        running=[outcomes[job.id] for job in overview.running],
        failing=[outcomes[job.id] for job in overview.failing],
    )


@_FIGURES.add("GET", "/job-names", JobNames, summary="List job names")
def list_names(
    backend: Backend,
    caller: Caller,
    *,
    prefix: Annotated[str, Param("What the names begin with.", max_length=LONGEST_NAME)] = "",
    limit: Annotated[int, Param(ge=1, le=_MOST_NAMES)] = _MOST_NAMES,
) -> JobNames:
    """List the distinct names with this prefix, in order, of jobs that belong to no job set or array."""
    return JobNames(items=[*Overview(backend).names(caller, prefix, limit=limit)])


def _summary_view(figures: Figures) -> SummaryView:
    return SummaryView(
        since=timestamp(figures.scope.since),
        until=timestamp(figures.scope.until),
        jobs=dict(figures.jobs),
        attempts=figures.attempts,
        retries=figures.retries,
        failures=[FailureTotal(kind=total.name, **_counts(total)) for total in figures.by_kind],
        nodes=[NodeTotal(node=total.name, **_counts(total)) for total in figures.by_node],
        failed=sum(total.count for total in figures.failures),
        ran_s=round(figures.ran_s, 3),
        productive_s=round(figures.productive_s, 3),
        wall_s=round(figures.wall_s, 3),
        lost_s=round(figures.lost_s, 3),
        ettr=None if figures.ettr is None else round(figures.ettr, 4),
        recoveries=figures.recoveries.count,
        mean_recovery_s=None if figures.recoveries.mean_s is None else round(figures.recoveries.mean_s, 3),
    )


def _counts(total: Total) -> dict[str, Any]:
    return {"count": total.count, "lost_s": round(total.lost_s, 3)}
