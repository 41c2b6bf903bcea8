"""Shows sessions of Backend.AI's door: one for people, and lists of them, of attempts and of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import span, until, when

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from holdfast.cli.render.words import Table
    from holdfast.client.backendai.views import BackendAiAttempt, BackendAiRetry, BackendAiSession, BackendAiStep


def session_facts(session: BackendAiSession, now_s: float) -> list[tuple[str, str]]:
    """Return what a person wants to know about a session, as names and values."""
    about, lifecycle, parent = session.metadata, session.lifecycle, session.parent_session_id
    facts = {
        "Session": f"{about.name} ({session.id})",
        "Type": about.session_type + (f", {about.cluster_size} kernels" if about.cluster_size > 1 else ""),
        "Status": lifecycle.status + (f": {lifecycle.status_info}" if lifecycle.status_info else ""),
        "Result": lifecycle.result,
        "Cause": session.retry_cause or "",
        "Retry": f"attempt {session.retry_state.attempt} of {session.retry_state.of}"
        + outcome_of(session.retry_state, now_s),
        "Parent": "" if parent is None else str(parent),
        "Tag": about.tag or "",
        "Created": _time(lifecycle.created_at),
        "Starts at": _time(lifecycle.starts_at),
        "Ended": _time(lifecycle.terminated_at),
    }
    return [(name, value) for name, value in facts.items() if value]


def outcome_of(retry: BackendAiRetry, now_s: float) -> str:
    """Say what becomes of the failure of a session, after the number of its attempt; empty if there is none."""
    if retry.state == "pending" and retry.next_attempt_at is not None:
        return f", next retry in {until(retry.next_attempt_at.isoformat(), now_s)}"
    endings = {
        "pending": ", to be retried",
        "retried": f", retried as {retry.next_session_id}",
        "exhausted": ", no retries are left",
        "not_eligible": ", its failure is not retried",
        "cancelled": ", its retry was cancelled",
        "disabled": ", retries are switched off",
        "none": "",
    }
    return endings.get(retry.state, f", {retry.state}")


def session_table(sessions: Sequence[BackendAiSession], now_s: float) -> Table:
    """Tabulate sessions."""
    columns = ("ID", "NAME", "TYPE", "STATUS", "RESULT", "ATTEMPT", "CAUSE", "CREATED", "TIME")
    rows = [
        (
            str(session.id),
            session.metadata.name,
            session.metadata.session_type,
            session.lifecycle.status,
            session.lifecycle.result,
            f"{session.retry_state.attempt}/{session.retry_state.of}",
            session.retry_cause or "",
            _time(session.lifecycle.created_at),
            _span(session.lifecycle.created_at, session.lifecycle.terminated_at, now_s),
        )
        for session in sessions
    ]
    return columns, rows


def attempt_table(attempts: Sequence[BackendAiAttempt], now_s: float) -> Table:
    """Tabulate the sessions of a chain."""
    columns = ("ATTEMPT", "ID", "STATUS", "RESULT", "EXIT", "CAUSE", "CREATED", "TIME")
    rows = [
        (
            str(attempt.attempt),
            str(attempt.id),
            attempt.status,
            attempt.result,
            "" if attempt.exit_code is None else str(attempt.exit_code),
            attempt.retry_cause or "",
            _time(attempt.created_at),
            _span(attempt.created_at, attempt.terminated_at, now_s),
        )
        for attempt in attempts
    ]
    return columns, rows


def step_table(steps: Sequence[BackendAiStep]) -> Table:
    """Tabulate the steps of a session, or of its kernels."""
    of_kernels = any(step.kernel_id for step in steps)
    columns = ("TIME", *(("KERNEL",) if of_kernels else ()), "PHASE", "FROM", "TO", "RESULT", "TIMES", "MESSAGE")
    rows = [
        (
            _time(step.created_at),
            *((str(step.kernel_id),) if of_kernels else ()),
            step.phase,
            step.from_status or "",
            step.to_status or "",
            step.result,
            str(step.attempts),
            step.message or step.error_code or "",
        )
        for step in steps
    ]
    return columns, rows


def _time(moment: datetime | None) -> str:
    return when(None if moment is None else moment.isoformat())


def _span(start: datetime, end: datetime | None, now_s: float) -> str:
    return span(start.isoformat(), None if end is None else end.isoformat(), now_s)
