"""What tables say of jobs, attempts and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.decisions import outcome
from holdfast.cli.render.words import ending, span, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobs import AttemptView, JobSummary, RunView


def job_table(jobs: Sequence[JobSummary]) -> Table:
    """Tabulate jobs, one a row."""
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
            span(job.submitted_at, job.ended_at),
            _reason(job),
        )
        for job in jobs
    ]
    return columns, rows


def _reason(job: JobSummary) -> str:
    return f"{job.reason} (due {when(job.retry_at)})".strip() if job.retry_at and job.state == "BackOff" else job.reason


def attempt_table(attempts: Sequence[AttemptView]) -> Table:
    """Tabulate attempts, one a row."""
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
            span(attempt.started_at, attempt.ended_at),
            f"{attempt.decision.action}: {outcome(attempt.decision)}" if attempt.decision else "",
        )
        for attempt in attempts
    ]
    return columns, rows


def run_table(runs: Sequence[RunView]) -> Table:
    """Tabulate the runs of one attempt, one rank a row."""
    columns = ("RANK", "STATE", "ENDED WITH", "ENDED BY", "NODE", "STARTED", "TOOK", "MESSAGE")
    rows = [
        (
            str(run.rank),
            run.state,
            ending(run.exit_code, run.signal, run.conditions),
            run.ended_by or "",
            run.node or "",
            when(run.started_at),
            span(run.started_at, run.ended_at),
            run.message,
        )
        for run in runs
    ]
    return columns, rows
