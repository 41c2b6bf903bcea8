"""How job sets look: rows of lists, the facts and tables of ``describe``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.jobs import took
from holdfast.cli.render.pods import condition_table, pod_counts
from holdfast.cli.render.tree import awaited
from holdfast.cli.render.words import age, pairs, until, when
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobsets import (
        BackoffView,
        ChildView,
        GroupView,
        JobSetLogEntry,
        JobSetSummary,
        JobSetView,
        SetDecisionView,
    )

_MOST_JOBS = 20
"""Jobs of a set that ``describe`` shows."""
_COLUMNS = ("NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE")
_MORE_COLUMNS = ("STATE", "JOBS", "READY", "ACTIVE", "SUCCEEDED", "FAILED", "COUNTED", "QUEUE", "USER", "ID", "REASON")


def jobset_table(sets: Sequence[JobSetSummary], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate job sets with the columns ``kubectl`` has for them; ``wide`` adds what else is known.

    Args:
        sets: Job sets, one a row.
        now_s: Seconds since the epoch, UTC; ages are counted to it.
        wide: Whether to add more columns.
    """
    rows = [(*_narrow(one, now_s), *(_more(one) if wide else ())) for one in sets]
    return (*_COLUMNS, *(_MORE_COLUMNS if wide else ())), rows


def _narrow(one: JobSetSummary, now_s: float) -> tuple[str, ...]:
    return (
        one.name,
        one.terminal or "",
        _restarted(one, now_s),
        "True" if one.terminal == "Completed" else "",
        str(one.suspend).lower(),
        age(one.created_at, now_s),
    )


def _more(one: JobSetSummary) -> tuple[str, ...]:
    counts = (one.jobs, one.ready, one.active, one.succeeded, one.failed)
    return (one.state, *map(str, counts), _counted(one), one.queue, one.submitted_by, one.id, one.reason)


def _restarted(one: JobSetSummary, now_s: float) -> str:
    """Write its restarts, and when a part of it that waits for one is due: ``3 (next in 4s)``."""
    return str(one.restarts) if one.restart_at is None else f"{one.restarts} (next in {until(one.restart_at, now_s)})"


def _counted(one: JobSetSummary) -> str:
    """Write counted restarts and how many are allowed; a set without a failure policy allows none."""
    return f"{one.restarts_counted}/{one.max_restarts or 0}"


def jobset_facts(one: JobSetView) -> list[tuple[str, str]]:
    """List what is known of a job set; what is not is left out."""
    facts = [
        ("Name", one.name),
        ("Id", one.id),
        ("State", ": ".join(filter(None, (one.state, one.reason, one.message)))),
        ("Queue", f"{one.queue}, priority {one.priority}"),
        ("Submitted by", one.submitted_by),
        ("Labels", pairs(one.labels)),
        ("Annotations", pairs(one.annotations)),
        ("Managed by", one.managed_by or ""),
        ("After", ", ".join(awaited(one.depends_on))),
        ("Suspended", "yes" if one.suspend else ""),
        ("Restarts", _restarts(one)),
        ("Restart strategy", one.restart_strategy or ""),
        ("Restarts in place", "" if one.in_place_restarts is None else str(one.in_place_restarts)),
        ("Startup", one.startup_order),
        ("Success", f"{one.success_operator} of {', '.join(one.success_targets) or 'its replicated jobs'}"),
        ("Coordinator", one.coordinator or ""),
        ("Left failed", ", ".join(one.left_failed)),
        ("Backing off", "; ".join(map(_backoff, one.backoff))),
        ("Created", when(one.created_at)),
        ("Started", when(one.started_at)),
        ("Ended", when(one.ended_at)),
        ("Deleted automatically", when(one.expires_at)),
    ]
    return [(name, value) for name, value in facts if value]


def _restarts(one: JobSetSummary) -> str:
    if one.max_restarts is None:
        return f"{one.restarts} of the whole set; no failure policy: its first failed job fails it"
    return f"{one.restarts} of the whole set; {one.restarts_counted} counted of {one.max_restarts} allowed"


def _backoff(one: BackoffView) -> str:
    what = f"job {one.job}" if one.job else f"replicatedJob {one.replicated_job}" if one.replicated_job else "the set"
    return f"{what} until {when(one.until)}"


def jobset_sections(one: JobSetView, log: Sequence[JobSetLogEntry], *, now_s: float) -> list[tuple[str, Table]]:
    """List the tables below the facts; empty ones are left out."""
    decisions = [(entry.at, entry.decision) for entry in log if entry.decision is not None]
    events = [entry for entry in log if entry.decision is None]
    sections = [
        ("Conditions", condition_table(one.conditions)),
        ("Replicated jobs", group_table(one.groups)),
        (_jobs_title(one), child_table(one.children[:_MOST_JOBS], now_s=now_s)),
        ("Decisions", decision_table(decisions)),
        ("Events", event_table(events)),
    ]
    return [(title, (columns, rows)) for title, (columns, rows) in sections if rows]


def _jobs_title(one: JobSetView) -> str:
    shown = min(_MOST_JOBS, len(one.children))
    if shown >= one.jobs:
        return "Jobs"
    return f"Jobs (the first {shown} of {one.jobs:,}; all: holdfast get jobs --jobset {one.name})"


def group_table(groups: Sequence[GroupView]) -> Table:
    """Tabulate replicated jobs; counts are of their jobs."""
    columns = (
        "NAME",
        "REPLICAS",
        "READY",
        "ACTIVE",
        "SUCCEEDED",
        "FAILED",
        "SUSPENDED",
        "RESTARTS",
        "PODS EACH",
        "WAITS FOR",
    )
    rows = [
        (
            group.name,
            *map(str, (group.replicas, group.ready, group.active, group.succeeded, group.failed, group.suspended)),
            _group_restarts(group),
            _pods(group),
            ", ".join(f"{name} {status}" for name, status in group.depends_on.items()),
        )
        for group in groups
    ]
    return columns, rows


def _pods(group: GroupView) -> str:
    """Write how many pods each of its jobs has: ``2``, ``2 of 10`` when only so many run at once, ``2 at once``."""
    if group.completions is None:
        return f"{group.parallelism} at once"
    together = group.parallelism >= group.completions
    return str(group.completions) if together else f"{group.parallelism} of {group.completions}"


def _group_restarts(group: GroupView) -> str:
    """Write its own restarts and its jobs', and its own limit: ``1 + 2 of jobs (3/5 counted)``."""
    own = f"{group.restarts} + {group.job_restarts} of jobs" if group.job_restarts else str(group.restarts)
    return own if group.max_restarts is None else f"{own} ({group.blamed}/{group.max_restarts} counted)"


def child_table(children: Sequence[ChildView], *, now_s: float) -> Table:
    """Tabulate the jobs of a set with their pods; what runs has taken until ``now_s``."""
    columns = ("NAME", "STATE", "ATTEMPT", "RESTARTS", "PODS", "STARTED", "TOOK", "REASON")
    rows = [
        (
            child.name,
            child.state,
            str(child.attempt),
            str(child.restarts),
            pod_counts(child.pods),
            when(child.started_at),
            took(child, now_s),
            child.reason,
        )
        for child in children
    ]
    return columns, rows


def decision_table(decisions: Sequence[tuple[str, SetDecisionView]]) -> Table:
    """Tabulate what was decided about failed jobs."""
    columns = ("TIME", "JOB", "ATTEMPT", "RULE", "ACTION", "GRANTED", "LIMITS", "MESSAGE")
    rows = [
        (
            when(at),
            decision.job,
            str(decision.attempt),
            decision.rule or "default",
            _action(decision),
            "yes" if decision.granted else "no",
            ", ".join(f"{use.name} {use.used}/{use.limit}" for use in decision.limits),
            decision.message,
        )
        for at, decision in decisions
    ]
    return columns, rows


def _action(decision: SetDecisionView) -> str:
    action = decision.action or "no failure policy"
    return f"{action} in {format_duration(decision.delay_s)}" if decision.delay_s else action


def event_table(events: Sequence[JobSetLogEntry]) -> Table:
    """Tabulate what was to be known of a set, as ``kubectl describe`` does."""
    return ("TYPE", "REASON", "TIME", "MESSAGE"), [(one.type, one.reason, when(one.at), one.message) for one in events]
