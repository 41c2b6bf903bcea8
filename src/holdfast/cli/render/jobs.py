"""Tables of jobs, their pods, attempts and runs, and of any work that has no columns of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.decisions import outcome
from holdfast.cli.render.references import references
from holdfast.cli.render.words import age, ending, pairs, span, until, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobs import AttemptView, ConditionView, HistoryEntry, JobSummary, PodsView, RunView
    from holdfast.wire.jobsets import ChildView
    from holdfast.wire.workloads import WorkloadView


WIDE_JOBS = (
    *("ID", "NAME", "QUEUE", "STATE", "ATTEMPT", "RETRIES", "SUBMITTED", "STARTED", "ENDED", "TOOK"),
    *("USER", "NODE", "LABELS", "PROGRESS", "REASON"),
)


def job_table(jobs: Sequence[JobSummary], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate jobs, one a row; times are counted to ``now_s``, in seconds since the epoch.

    Jobs that share a name also show a part of their ids. A wide table has ids, times, and facts of the last attempt.
    """
    called = references((job.id, job.name) for job in jobs)
    if wide:
        return WIDE_JOBS, [_wide(job, now_s) for job in jobs]
    rows = [
        (
            called[job.id],
            job.state,
            str(job.attempt),
            took(job, now_s),
            age(job.submitted_at, now_s),
            _reason(job, now_s),
        )
        for job in jobs
    ]
    return ("NAME", "STATE", "ATTEMPT", "TOOK", "AGE", "REASON"), rows


def _wide(job: JobSummary, now_s: float) -> tuple[str, ...]:
    return (
        job.id,
        job.name,
        job.queue,
        job.state,
        str(job.attempt),
        str(job.retries),
        when(job.submitted_at),
        when(job.started_at),
        when(job.ended_at),
        took(job, now_s),
        job.submitted_by,
        getattr(job, "node", None) or "",
        pairs(getattr(job, "labels", {})),
        getattr(job, "progress", ""),
        _reason(job, None),
    )


def took(job: JobSummary | ChildView, now_s: float) -> str:
    """Write the time from the first start of a job's programs to their last end, or to now while it runs."""
    return span(job.started_at, job.ended_at, now_s if job.state == "Running" else None)


def _reason(job: JobSummary, now_s: float | None) -> str:
    """Write a job's reason, and when its retry is due: in how long, or without ``now_s`` at what time."""
    if not job.retry_at or job.state != "BackOff":
        return job.reason
    due = f"due {when(job.retry_at)}" if now_s is None else f"due in {until(job.retry_at, now_s)}"
    return f"{due}: {job.reason}" if job.reason else due


def short_attempt_table(attempts: Sequence[AttemptView], *, now_s: float) -> Table:
    """Tabulate attempts in few columns; times are counted to ``now_s``."""
    rows = [
        (
            str(attempt.number),
            attempt.state,
            ending(attempt.exit_code, attempt.signal, attempt.conditions),
            attempt.node or "",
            span(attempt.started_at, attempt.ended_at, now_s),
            age(attempt.started_at or attempt.created_at, now_s),
            _decided(attempt),
        )
        for attempt in attempts
    ]
    return ("ATTEMPT", "STATE", "ENDED WITH", "NODE", "TOOK", "AGE", "DECISION"), rows


def _decided(attempt: AttemptView) -> str:
    return f"{attempt.decision.action}: {outcome(attempt.decision)}" if attempt.decision else ""


def attempt_table(attempts: Sequence[AttemptView], *, now_s: float) -> Table:
    """Tabulate attempts in full; times are counted to ``now_s``."""
    columns = ("ATTEMPT", "STATE", "CAUSE", "ENDED WITH", "CATEGORY", "NODE", "STARTED", "TOOK", "DECISION")
    rows = [
        (
            str(attempt.number),
            attempt.state,
            attempt.cause or "",
            ending(attempt.exit_code, attempt.signal, attempt.conditions),
            "/".join(filter(None, (attempt.category, attempt.subcategory))),
            attempt.node or "",
            when(attempt.started_at),
            span(attempt.started_at, attempt.ended_at, now_s),
            _decided(attempt),
        )
        for attempt in attempts
    ]
    return columns, rows


def history_table(history: Sequence[HistoryEntry]) -> Table:
    """Tabulate the steps of a job's attempts, one a row."""
    columns = ("ATTEMPT", "PHASE", "FROM", "TO", "OUTCOME", "TIMES", "FIRST", "LAST", "MESSAGE")
    rows = [
        (
            str(step.attempt),
            step.phase,
            step.from_status,
            step.to_status,
            step.outcome,
            str(step.times),
            when(step.created_at),
            when(step.updated_at),
            _message(step),
        )
        for step in history
    ]
    return columns, rows


def _message(step: HistoryEntry) -> str:
    parts = (f"{part.name} {part.message}" for part in step.steps)
    return "; ".join(filter(None, (": ".join(filter(None, (step.error_code, step.message))), *parts)))


def run_table(runs: Sequence[RunView], *, now_s: float) -> Table:
    """Tabulate the runs of one attempt, one rank a row; times are counted to ``now_s``."""
    columns = ("RANK", "STATE", "ENDED WITH", "ENDED BY", "NODE", "STARTED", "TOOK", "PROGRESS", "MESSAGE")
    rows = [
        (
            str(run.rank),
            run.state,
            ending(run.exit_code, run.signal, run.conditions),
            run.ended_by or "",
            run.node or "",
            when(run.started_at),
            span(run.started_at, run.ended_at, now_s),
            run.progress,
            run.message or run.error_line,
        )
        for run in runs
    ]
    return columns, rows


def pod_counts(pods: PodsView) -> str:
    """Write counts that are not zero: ``2 active, 1 succeeded``."""
    counts = {
        "active": pods.active,
        "terminating": pods.terminating,
        "succeeded": pods.succeeded,
        "failed": pods.failed,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"


def pod_facts(pods: PodsView) -> list[tuple[str, str]]:
    """List the known facts of a job's pods."""
    message = (
        "until one succeeds and all have ended"
        if pods.completions is None
        else f"{pods.completions} completion{'' if pods.completions == 1 else 's'}"
    )
    facts = [
        ("Pods", f"{pods.parallelism} at once, {message}"),
        ("Pods now", f"{pod_counts(pods)}; {pods.ready} ready"),
        ("Program restarts", str(pods.restarts or "")),
        ("Completed indexes", pods.completed_indexes),
        ("Failed indexes", pods.failed_indexes),
        ("Suspended", "yes" if pods.suspended else ""),
    ]
    return [(name, value) for name, value in facts if value]


def condition_table(conditions: Sequence[ConditionView]) -> Table:
    """Tabulate conditions, including those that no longer hold."""
    rows = [
        (condition.type, str(condition.status), condition.reason, when(condition.since), condition.message)
        for condition in conditions
    ]
    return ("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows


def workload_table(workloads: Sequence[WorkloadView], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate work of a kind, one a row; ages are counted to ``now_s``, in seconds since the epoch."""
    rows = [
        (
            workload.name,
            workload.state,
            age(workload.created_at, now_s),
            workload.reason,
            *((workload.id, workload.queue, workload.submitted_by) * wide),
        )
        for workload in workloads
    ]
    return ("NAME", "STATE", "AGE", "REASON", *(("ID", "QUEUE", "USER") * wide)), rows
