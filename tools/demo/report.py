"""Shows what became of the batch: a table of all jobs, one of the job sets, and one decision explained."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from tools.demo.batch import STORIES
from tools.demo.watch import coloured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView, JobView
    from holdfast.wire.jobsets import JobSetSummary


def table(jobs: Sequence[JobView]) -> Table:
    """Make the table: the jobs with a story first, then the others."""
    made = Table("JOB", "STATE", "ATTEMPTS", "CAUSES", "DECISION", "TIME", box=box.SIMPLE_HEAD)
    for job in sorted(jobs, key=lambda job: job.name not in STORIES):
        failed = [attempt for attempt in job.attempts if attempt.decision]
        made.add_row(
            job.name + (f" (gang of {job.gang})" if job.gang > 1 else ""),
            coloured(job.state),
            str(len(job.attempts)),
            ", ".join(f"{count} x {cause}" if count > 1 else cause for cause, count in _causes(failed)),
            _decision(failed[-1]) if failed else "",
            _time(job),
        )
    return made


def table_of_sets(client: Client, sets: Sequence[JobSetSummary]) -> Table:
    """Make the table of job sets, with what was decided about their failed jobs."""
    made = Table("JOB SET", "STATE", "JOBS", "RESTARTS", "DECISIONS", "TIME", box=box.SIMPLE_HEAD)
    for one in sets:
        decisions = [entry.decision for entry in client.job_set_log(one.name) if entry.decision]
        made.add_row(
            one.name,
            coloured(one.state),
            f"{one.succeeded} of {one.jobs} succeeded",
            f"{one.restarts_counted} of {one.max_restarts}",
            ", ".join(f"{decision.action} for {decision.job}" for decision in decisions),
            "" if one.ended_at is None else f"{_seconds(one.created_at, one.ended_at):.1f} s",
        )
    return made


def _causes(failed: Sequence[AttemptView]) -> list[tuple[str, int]]:
    return list(Counter(_cause(attempt) for attempt in failed).items())


def _cause(attempt: AttemptView) -> str:
    if attempt.signal is not None and attempt.cause != "oom_killed":
        return f"{attempt.cause} (signal {attempt.signal})"
    if attempt.exit_code is not None and attempt.cause == "kernel_nonzero_exit":
        return f"{attempt.cause} (exit {attempt.exit_code})"
    return attempt.cause or "unknown"


def _decision(attempt: AttemptView) -> str:
    decision = attempt.decision
    if decision is None:
        return ""
    rule = f" by {decision.policy}/{decision.rule}" if decision.rule else ""
    memory = f", memory {decision.memory}" if decision.memory else ""
    return f"{decision.action}{rule}{memory}"


def _time(job: JobView) -> str:
    last = job.ended_at or job.attempts[-1].ended_at if job.attempts else job.ended_at
    if last is None:
        return ""
    return f"{_seconds(job.submitted_at, last):.1f} s"


def explain(client: Client, console: Console, name: str) -> None:
    """Print why a job's first failed attempt was treated as it was, as ``holdfast why`` knows it."""
    why = client.why(name, attempt=1)
    console.print(Text(f"$ holdfast why {name} --attempt 1", style="bold"))
    console.print(why.headline, highlight=False)
    for sentence in why.summary:
        console.print(sentence, highlight=False)


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
