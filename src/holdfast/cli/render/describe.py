"""What ``describe`` shows of a job: its facts and pods, its newest attempts with their runs, and its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.jobs import attempt_table, condition_table, history_table, pod_facts, run_table
from holdfast.cli.render.tree import awaited
from holdfast.cli.render.words import pairs, when
from holdfast.domain.terms.kinds import JOB_SET, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobs import HistoryEntry, JobView


_MOST = 20
"""The most attempts, runs and steps that are shown."""
_SET_LABEL = "jobset.sigs.k8s.io/jobset-name"


def job_facts(job: JobView) -> list[tuple[str, str]]:
    """List the known facts of a job."""
    command = job.spec.get("command") or [job.spec.get("shell", "")]
    facts = [
        ("Id", job.id),
        ("Name", job.name),
        ("Queue", f"{job.queue}, priority {job.priority}"),
        ("State", f"{job.state}: {job.reason}" if job.reason else job.state),
        ("Labels", pairs(job.labels)),
        ("Command", " ".join(map(str, command))),
        ("Resources", _resources(job)),
        ("Secrets", _secrets(job)),
        ("Gang", "" if job.pods else str(job.gang)),
        _place(job),
        ("After", ", ".join(awaited(job.depends_on))),
        *(pod_facts(job.pods) if job.pods else ()),
        ("Submitted", when(job.submitted_at)),
        ("Submitted by", job.submitted_by),
        ("Group", job.group),
        ("Parent", job.parent or ""),
        ("Started", when(job.started_at)),
        ("Ended", when(job.ended_at)),
        ("Retry due", when(job.retry_at)),
        ("Retries", "" if job.pods and not job.retries else f"{job.retries} granted"),
        ("By rule", ", ".join(f"{rule} {count}" for rule, count in sorted(job.counters.items()))),
        ("Policies", ", ".join(job.spec.get("retryPolicies") or ())),
    ]
    return [(name, value) for name, value in facts if value]


def job_sections(job: JobView, history: Sequence[HistoryEntry] = (), *, now_s: float) -> list[tuple[str, Table]]:
    """List the tables below the facts: the newest attempts and steps, and the last runs while they fit a screen.

    Durations of what still runs are counted to ``now_s``.
    """
    conditions = [("Conditions", condition_table(job.pods.conditions))] if job.pods and job.pods.conditions else []
    newest = job.attempts[-_MOST:]
    title = _cut("Attempts", len(newest), len(job.attempts), "the last", f"holdfast attempts {job.name}")
    sections = [(title, attempt_table(newest, now_s=now_s))] if newest else []
    latest = history[-_MOST:]
    named = _cut("History", len(latest), len(history), "the last", f"GET /api/v1/jobs/{job.id}/history")
    steps = [(named, history_table(latest))] if latest else []
    return [*conditions, *sections, *reversed(list(_runs(job, now_s))), *steps]


def _runs(job: JobView, now_s: float) -> Iterator[tuple[str, Table]]:
    room = _MOST
    for attempt in reversed(job.attempts):
        runs = attempt.runs[: max(room, 0)]
        if runs:
            every = f"holdfast get job {job.name} -o json"
            yield (
                _cut(f"Runs of attempt {attempt.number}", len(runs), len(attempt.runs), "the first", every),
                run_table(runs, now_s=now_s),
            )
        room -= len(attempt.runs)


def _cut(title: str, shown: int, count: int, which: str, every: str) -> str:
    return title if shown == count else f"{title} ({which} {shown} of {count:,}; all: {every})"


def _resources(job: JobView) -> str:
    resources = job.resources
    unit = "pod" if job.pods else "rank"
    named = "".join(f", {name} {amount}" for name, amount in resources.named.items())
    return f"cpu {resources.cpu}, memory {resources.memory}, gpu {resources.gpu:g}{named} for each {unit}"


def _secrets(job: JobView) -> str:
    """Name the variables with secret values."""
    return ", ".join(name for name, value in (job.spec.get("env") or {}).items() if isinstance(value, dict))


def _place(job: JobView) -> tuple[str, str]:
    """Return the kind of workload that a job is part of, and the job's place in it."""
    owner = job.owner
    if owner is None:
        return "Part of", ""
    title = KINDS[owner.kind].noun.capitalize() if owner.kind in KINDS else "Part of"
    name = owner.name or job.labels.get(_SET_LABEL, owner.id)
    if job.array is not None:
        return title, f"{name}, index {job.array_index}"
    group = "replicatedJob " if owner.kind == JOB_SET.name else ""
    return title, f"{name}, {group}{job.replicated_job}, index {job.job_index}"
