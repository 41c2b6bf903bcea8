"""What tables say of jobs, attempts and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.decisions import outcome
from holdfast.cli.render.words import ending, span, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobs import AttemptView, HistoryEntry, JobSummary, RunView
    from holdfast.wire.jobsets import ChildView


_MOST_RANKS = 4


def job_table(jobs: Sequence[JobSummary], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate jobs, one a row; what runs has taken until ``now_s``, in seconds since the epoch.

    A wide table has the progress of those of which everything is known.
    """
    columns = ("ID", "NAME", "QUEUE", "STATE", "ATTEMPT", "RETRIES", "SUBMITTED", "TOOK", "REASON")
    rows = [
        (
            job.id,
            job.name,
            job.queue,
            job.state,
            str(job.attempt),
            str(job.retries),
            when(job.submitted_at),
            took(job, now_s),
            *((_progress(job),) if wide else ()),
            _reason(job),
        )
        for job in jobs
    ]
    return (*columns[:-1], *(("PROGRESS",) if wide else ()), columns[-1]), rows


def _progress(job: JobSummary) -> str:
    """Write what the runs of a job's last attempt say of how far they are, with their ranks where there are several."""
    attempts = getattr(job, "attempts", ())
    runs = attempts[-1].runs if attempts else ()
    said = [(run.rank, run.progress) for run in runs if run.progress]
    return said[0][1] if len(runs) == 1 and said else "; ".join(f"{rank}: {text}" for rank, text in said[:_MOST_RANKS])


def took(job: JobSummary | ChildView, now_s: float) -> str:
    """Write how long a job's programs took, from the first start to the last end; of one that runs, until now."""
    return span(job.started_at, job.ended_at, now_s if job.state == "Running" else None)


def _reason(job: JobSummary) -> str:
    return f"{job.reason} (due {when(job.retry_at)})".strip() if job.retry_at and job.state == "BackOff" else job.reason


def attempt_table(attempts: Sequence[AttemptView], *, now_s: float) -> Table:
    """Tabulate attempts, one a row; what runs has taken until ``now_s``."""
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
            f"{attempt.decision.action}: {outcome(attempt.decision)}" if attempt.decision else "",
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
    """Tabulate the runs of one attempt, one rank a row; what runs has taken until ``now_s``."""
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
            run.message,
        )
        for run in runs
    ]
    return columns, rows
