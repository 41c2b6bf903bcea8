"""The wording of notifications for people, and their data for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.domain.terms.kinds import JOB, KINDS
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from holdfast.domain.notifications.notification import OutcomeReport

_WORDS = {
    "cancelled": "was cancelled",
    "held": "is held until it is released",
    "recovered": "succeeded after failures",
    "jobset.recovered": "completed after restarts",
    "notifier.test": "is only a test",
    "session.retry_scheduled": "failed and will be retried",
    "session.retry_exhausted": "failed with no retries left",
}
"""Wording by the event's name or its last word; other events are described by their last word itself."""
_MOST_CAUSES = 10


def subject(report: OutcomeReport) -> str:
    """Describe the event in one line: ``job train failed: exit code 3: ValueError: no such key``."""
    noun = "session" if report.session else KINDS[report.kind].noun if report.kind in KINDS else report.kind
    word = report.event.rpartition(".")[2]
    what = f"{noun} {report.name} {_WORDS.get(report.event) or _WORDS.get(word, word)}"
    why = _why(report)
    return " ".join(f"{what}: {why}".split()) if why else what


def _why(report: OutcomeReport) -> str:
    if report.causes:
        causes = ", ".join(f"{count} x {cause}" for cause, count in list(report.causes.items())[:_MOST_CAUSES])
        return f"{report.reason} ({causes})"
    first, second = report.failure, report.reason
    return second or first if report.event == "job.held" else first or second


def text(report: OutcomeReport) -> str:
    """Describe the event in full, one fact per line."""
    lines = [subject(report), ""]
    lines += [f"{name + ':':<11}{value}" for name, value in facts(report)]
    return "\n".join(lines) + "\n"


def facts(report: OutcomeReport) -> list[tuple[str, str]]:
    """List the known facts with their names."""
    took = format_duration(round(report.at - report.started_at, 1)) if report.started_at is not None else ""
    causes = [f"{count} x {cause}" for cause, count in list(report.causes.items())[:_MOST_CAUSES]]
    named = [
        (report.kind, f"{report.name} ({report.id})"),
        ("queue", report.queue),
        ("user", report.submitted_by),
        ("state", report.state),
        ("reason", report.reason),
        ("failure", report.failure),
        ("cause", "/".join(filter(None, (report.category or report.cause,)))),
        (KINDS.get(report.kind, JOB).parts, ", ".join(f"{count} {how}" for how, count in report.counts.items())),
        ("failed of", ", ".join(causes)),
        ("retry", _retry(report)),
        ("attempts", str(report.attempts or "")),
        ("node", ", ".join(report.nodes)),
        ("took", took),
        ("at", stamp(report.at)),
        ("more", why_command(report)),
    ]
    return [(name, value) for name, value in named if value]


def _retry(report: OutcomeReport) -> str:
    """Describe which session of its chain it is, and when its retry is due."""
    session = report.session
    if not session:
        return ""
    due = f" at {stamp(session['retry_at'])}" if "retry_at" in session else ""
    return f"attempt {session['attempt']} of {session['of']}{due}"


def why_command(report: OutcomeReport) -> str:
    """Return the command that explains the event."""
    return f"holdfast why {f'{report.kind} ' if KINDS.get(report.kind, JOB).parts else ''}{report.id}"


def stamp(at: float) -> str:
    """Write a time as in webhooks."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def payload(report: OutcomeReport) -> dict[str, Any]:
    """Return the payload for programs: type, time and data, as Standard Webhooks proposes."""
    data = {
        "kind": report.kind,
        "id": report.id,
        "name": report.name,
        "queue": report.queue,
        "submitted_by": report.submitted_by,
        "state": report.state,
        "summary": subject(report),
        "reason": report.reason,
        "failure": report.failure,
        "cause": report.cause,
        "category": report.category,
        "exit_code": report.exit_code,
        "signal": report.signal,
        "attempts": report.attempts,
        "nodes": list(report.nodes),
        "submitted_at": stamp(report.submitted_at),
        "started_at": None if report.started_at is None else stamp(report.started_at),
        "took_s": None if report.started_at is None else round(report.at - report.started_at, 3),
        "counts": dict(report.counts),
        "causes": dict(report.causes),
        "why": why_command(report),
        **({"session": dict(report.session)} if report.session else {}),
    }
    return {"type": report.event, "timestamp": stamp(report.at), "data": data}
