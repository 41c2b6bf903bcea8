"""What the live line says of work that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import bar
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from holdfast.wire.jobs import JobOutcome

_BAR = 20
"""Columns."""


def job_line(job: JobOutcome) -> str:
    """Say how a job is: its state, its attempt, how far its program says it is, or why it does not run."""
    parts = [job.state]
    if job.attempt > 1 or (job.attempt and job.state != "Running"):
        parts.append(f"attempt {job.attempt}")
    if job.state == "Running" and job.progress:
        drawn = bar(job.progress, _BAR)
        parts.append(f"{drawn} {job.progress}" if drawn else job.progress)
    elif job.state != "Running" and job.reason:
        parts.append(job.reason)
    return f"{job.name}: {', '.join(parts)}"


def waited(seconds: float) -> str:
    """Write for how long somebody has waited."""
    return format_duration(int(seconds))
