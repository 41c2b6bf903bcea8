"""How a job looks in a notebook: its state, its attempts, and its progress."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.wire.jobs import AttemptView, JobView, RunView

_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\b|\s*(\d+(?:\.\d+)?)\s*%")
_COLOURS = {"Succeeded": "#2e7d32", "Failed": "#c62828", "Cancelled": "#757575", "Held": "#ef6c00"}
_USUAL = "#1565c0"
_MOST_ATTEMPTS = 10
_MOST_RUNS = 16


def share_of(progress: str) -> float | None:
    """Read the share that is done, from 0 to 1, of a text that begins with ``3/10`` or ``30 %``."""
    match = _SHARE.match(progress)
    if match is None:
        return None
    done, total, percent = match.groups()
    share = float(percent) / 100 if percent else float(done) / float(total) if float(total) else None
    return None if share is None else min(1.0, share)


def html_of(job: JobView) -> str:
    """Write a job as a table."""
    left_out = len(job.attempts) - _MOST_ATTEMPTS
    rows = [_row("", f"{left_out} earlier attempts", "", "")] if left_out > 0 else []
    rows += [_attempt(attempt) for attempt in job.attempts[-_MOST_ATTEMPTS:]]
    colour = _COLOURS.get(job.state, _USUAL)
    head = (
        f'<b>{escape(job.name)}</b> <code>{escape(job.id)}</code> <b style="color:{colour}">{escape(job.state)}</b>'
        f" {escape(job.reason)}"
    )
    names = "".join(f"<th>{name}</th>" for name in ("Attempt", "State", "Ended with", "Progress"))
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    return f"<div>{head}{table}</div>"


def _attempt(attempt: AttemptView) -> str:
    ended = attempt.cause or ("" if attempt.exit_code is None else f"exit code {attempt.exit_code}")
    reporting = [run for run in attempt.runs if run.progress][:_MOST_RUNS]
    return _row(
        str(attempt.number), attempt.state, ended, "".join(_progress(run, many=len(reporting) > 1) for run in reporting)
    )


def _row(number: str, state: str, ended: str, progress: str) -> str:
    return f"<tr><td>{number}</td><td>{escape(state)}</td><td>{escape(ended)}</td><td>{progress}</td></tr>"


def _progress(run: RunView, *, many: bool) -> str:
    share = share_of(run.progress)
    bar = "" if share is None else f'<progress value="{share:.4f}" max="1"></progress> '
    return f"<div>{f'rank {run.rank}: ' if many else ''}{bar}{escape(run.progress)}</div>"
