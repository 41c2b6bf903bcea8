"""How job sets look: rows of lists, the facts and tables of ``describe``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.jobs import condition_table, pod_counts, took
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
    rows = [(*_narrow(job_set, now_s), *(_more(job_set) if wide else ())) for job_set in sets]
    return (*_COLUMNS, *(_MORE_COLUMNS if wide else ())), rows


def _narrow(job_set: JobSetSummary, now_s: float) -> tuple[str, ...]:
    return (
        job_set.name,
        job_set.terminal or "",
        _restarted(job_set, now_s),
        "True" if job_set.terminal == "Completed" else "",
        str(job_set.suspend).lower(),
        age(job_set.created_at, now_s),
    )


def _more(job_set: JobSetSummary) -> tuple[str, ...]:
    counts = (job_set.jobs, job_set.ready, job_set.active, job_set.succeeded, job_set.failed)
    return (
        job_set.state,
        *map(str, counts),
        _counted(job_set),
        job_set.queue,
        job_set.submitted_by,
        job_set.id,
        job_set.reason,
    )


def _restarted(job_set: JobSetSummary, now_s: float) -> str:
    """Write the restarts, and when the next one is due: ``3 (next in 4s)``."""
    return (
        str(job_set.restarts)
        if job_set.restart_at is None
        else f"{job_set.restarts} (next in {until(job_set.restart_at, now_s)})"
    )


def _counted(job_set: JobSetSummary) -> str:
    """Write counted restarts and how many are allowed; a set without a failure policy allows none."""
    return f"{job_set.restarts_counted}/{job_set.max_restarts or 0}"


def jobset_facts(job_set: JobSetView) -> list[tuple[str, str]]:
    """List the known facts of a job set."""
    facts = [
        ("Name", job_set.name),
        ("Id", job_set.id),
        ("State", ": ".join(filter(None, (job_set.state, job_set.reason, job_set.message)))),
        ("Queue", f"{job_set.queue}, priority {job_set.priority}"),
        ("Submitted by", job_set.submitted_by),
        ("Labels", pairs(job_set.labels)),
        ("Annotations", pairs(job_set.annotations)),
        ("Managed by", job_set.managed_by or ""),
        ("After", ", ".join(awaited(job_set.depends_on))),
        ("Suspended", "yes" if job_set.suspend else ""),
        ("Restarts", _restarts(job_set)),
        ("Restart strategy", job_set.restart_strategy or ""),
        ("Restarts in place", "" if job_set.in_place_restarts is None else str(job_set.in_place_restarts)),
        ("Startup", job_set.startup_order),
        ("Success", f"{job_set.success_operator} of {', '.join(job_set.success_targets) or 'its replicated jobs'}"),
        ("Coordinator", job_set.coordinator or ""),
        ("Left failed", ", ".join(job_set.left_failed)),
        ("Backing off", "; ".join(map(_backoff, job_set.backoff))),
        ("Created", when(job_set.created_at)),
        ("Started", when(job_set.started_at)),
        ("Ended", when(job_set.ended_at)),
        ("Deleted automatically", when(job_set.expires_at)),
    ]
    return [(name, value) for name, value in facts if value]


def _restarts(job_set: JobSetSummary) -> str:
    if job_set.max_restarts is None:
        return f"{job_set.restarts} of the whole set; no failure policy: its first failed job fails it"
    return f"{job_set.restarts} of the whole set; {job_set.restarts_counted} counted of {job_set.max_restarts} allowed"


def _backoff(backoff: BackoffView) -> str:
    what = (
        f"job {backoff.job}"
        if backoff.job
        else f"replicatedJob {backoff.replicated_job}"
        if backoff.replicated_job
        else "the set"
    )
    return f"{what} until {when(backoff.until)}"


def jobset_sections(job_set: JobSetView, log: Sequence[JobSetLogEntry], *, now_s: float) -> list[tuple[str, Table]]:
    """List the tables below the facts; empty ones are left out."""
    decisions = [(entry.at, entry.decision) for entry in log if entry.decision is not None]
    events = [entry for entry in log if entry.decision is None]
    sections = [
        ("Conditions", condition_table(job_set.conditions)),
        ("Replicated jobs", group_table(job_set.groups)),
        (_jobs_title(job_set), child_table(job_set.children[:_MOST_JOBS], now_s=now_s)),
        ("Decisions", decision_table(decisions)),
        ("Events", event_table(events)),
    ]
    return [(title, (columns, rows)) for title, (columns, rows) in sections if rows]


def _jobs_title(job_set: JobSetView) -> str:
    shown = min(_MOST_JOBS, len(job_set.children))
    if shown >= job_set.jobs:
        return "Jobs"
    return f"Jobs (the first {shown} of {job_set.jobs:,}; all: holdfast get jobs --jobset {job_set.name})"


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
    """Write the number of pods of each job: ``2``, ``2 of 10`` if only 2 run at once, or ``2 at once``."""
    if group.completions is None:
        return f"{group.parallelism} at once"
    together = group.parallelism >= group.completions
    return str(group.completions) if together else f"{group.parallelism} of {group.completions}"


def _group_restarts(group: GroupView) -> str:
    """Write its own restarts and its jobs', and its own limit: ``1 + 2 of jobs (3/5 counted)``."""
    own = f"{group.restarts} + {group.job_restarts} of jobs" if group.job_restarts else str(group.restarts)
    return own if group.max_restarts is None else f"{own} ({group.blamed}/{group.max_restarts} counted)"


def child_table(children: Sequence[ChildView], *, now_s: float) -> Table:
    """Tabulate the jobs of a set with their pods; times are counted to ``now_s``."""
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
    """Tabulate the events of a set, as ``kubectl describe`` does."""
    return ("TYPE", "REASON", "TIME", "MESSAGE"), [
        (event.type, event.reason, when(event.at), event.message) for event in events
    ]
