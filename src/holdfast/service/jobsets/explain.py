"""Explains a job set's state, with the decisions about its failed jobs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.explanation import DecisionTrace, Explanation
from holdfast.domain.workloads.jobset.explain import (
    _MOST_NAMED,
    attempt_of,
    explain_decision,
    set_headline,
    set_status_lines,
)
from holdfast.domain.workloads.jobset.state import SetDecision
from holdfast.errors import NotFound
from holdfast.ports.store import JobFilter
from holdfast.service.access.hiding import unquoted, without_logs
from holdfast.service.summary import paused_lines, waiting_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.workloads.jobset.state import JobSet, SetLogEntry
    from holdfast.ports.store import Store

MOST_TRACES = 20
_LOG_PART = 1000


def explained(
    job_set: JobSet, store: Store, now: float, *, job: str | None = None, quoting: bool = True
) -> Explanation[JobSet]:
    """Explain a set, or with a job's name only the decisions about that job; ``quoting`` includes program output.

    Raises:
        NotFound: The set has no job of that name.
    """
    spec = set_spec_of(job_set)
    if job is not None and not store.jobs(JobFilter(name=job, job_set=job_set.id), limit=1):
        msg = f"job set {job_set.name!r} has no job {job!r}"
        raise NotFound(msg, hint=f"list them with: holdfast get jobs --jobset {job_set.name}")
    traces, omitted = _traces(store, job_set.id, job=job, quoting=quoting)
    summary = [*set_status_lines(job_set, spec, now), *_without_a_place(store, job_set.id)]
    summary += paused_lines(store, ended=bool(job_set.ended), headline=" ".join(summary))
    return Explanation(job_set, set_headline(job_set, spec), summary, traces=traces, omitted=omitted)


def _without_a_place(store: Store, set_id: str) -> Iterator[str]:
    """Name the jobs that wait for a place, or whose pods do, and say what for."""
    running = JobFilter(states=frozenset({JobState.RUNNING}), job_set=set_id, reasoned=True)
    queued = JobFilter(states=frozenset({JobState.QUEUED}), job_set=set_id)
    waiting = [job for where in (running, queued) for job in store.jobs(where, limit=_MOST_NAMED + 1)]
    yield from (unquoted(waiting_line(store, job)) for job in waiting[:_MOST_NAMED])
    if len(waiting) > _MOST_NAMED:
        yield "More of its jobs wait."


def _traces(store: Store, set_id: str, *, job: str | None, quoting: bool) -> tuple[Sequence[DecisionTrace], int]:
    """Return the newest decisions about a set's jobs, or one of them, and how many earlier ones there are."""
    newest: deque[DecisionTrace] = deque(maxlen=MOST_TRACES)
    count = 0
    for entry in whole_log(store, set_id):
        if isinstance(entry.what, SetDecision) and job in {None, entry.what.job}:
            newest.append(DecisionTrace(entry.at, entry.what, ()))
            count += 1
    failures: dict[str, dict[int, Failure | None]] = {}
    for name in {trace.decision.job for trace in newest}:
        for named_job in store.jobs(JobFilter(name=name, job_set=set_id), limit=1):
            attempts = store.attempts(named_job.id)
            attempts = attempts if quoting else [*map(without_logs, attempts)]
            failures[name] = {attempt.number: attempt.failure for attempt in attempts}
    traces = [evolve(trace, summary=_told(trace.decision, failures.get(trace.decision.job, {}))) for trace in newest]
    return traces, count - len(traces)


def whole_log(store: Store, set_id: str) -> Iterator[SetLogEntry]:
    """Read a set's log, part by part."""
    after = 0
    while part := store.set_log(set_id, after=after, limit=_LOG_PART):
        yield from part
        after = part[-1].seq


def _told(decision: SetDecision, failures: Mapping[int, Failure | None]) -> Sequence[str]:
    return explain_decision(decision, failures.get(attempt_of(decision)))
