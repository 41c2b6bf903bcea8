"""Renders job sets as wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.jobset.model import RestartStrategy, coordinator_endpoint
from holdfast.domain.workloads.jobset.state import GroupStatus, SetDecision
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.jobsets import (
    BackoffView,
    ChildView,
    GroupView,
    JobSetApplied,
    JobSetDecisionTrace,
    JobSetLogEntry,
    JobSetSummary,
    JobSetView,
    JobSetWhy,
    SetDecisionView,
)
from holdfast.wire.problems import problem_entry
from holdfast.wire.render_decisions import considered_views, limit_views
from holdfast.wire.render_jobs import dependency_views
from holdfast.wire.render_pods import condition_view, pods_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.job import ChildOf, Job
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, SetLogEntry
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord
    from holdfast.errors import Problem

_COUNTS = ("ready", "active", "succeeded", "failed", "suspended")


def set_summary(job_set: JobSet, spec: JobSetSpec, *, queue: str) -> JobSetSummary:
    """Render a set as in lists; ``queue`` is the queue of its jobs."""
    return JobSetSummary(**_header(job_set, spec, queue))


def set_applied(
    job_set: JobSet, spec: JobSetSpec, *, queue: str, result: str, warnings: Sequence[Problem]
) -> JobSetApplied:
    """Render a set that was sent."""
    entries = [problem_entry(warning) for warning in warnings]
    return JobSetApplied(**_header(job_set, spec, queue), result=result, warnings=entries)


def _header(job_set: JobSet, spec: JobSetSpec, queue: str) -> dict[str, Any]:
    state = job_set.state
    reason, message = job_set.reason(spec)
    return {
        "id": job_set.id,
        "name": job_set.name,
        "state": job_set.phase(spec),
        "reason": reason,
        "message": message,
        "terminal": state.terminal.value or None,
        "suspend": spec.suspend,
        "deleting": job_set.deleting,
        "queue": queue,
        "priority": spec.priority,
        "generation": job_set.generation,
        "resource_version": job_set.resource_version if job_set.id else "",
        "submitted_by": job_set.submitted_by,
        "group": job_set.group,
        "jobs": spec.replicas,
        **{name: sum(getattr(group, name) for group in state.groups) for name in _COUNTS},
        "restarts": state.restarts,
        "restarts_counted": max(state.counted, _in_place(spec, state) or 0),
        "max_restarts": None if spec.failure is None else spec.failure.max_restarts,
        "restart_at": None if spec.suspend else optional_timestamp(min(state.not_before.values(), default=None)),
        "created_at": timestamp(job_set.created_at),
        "started_at": optional_timestamp(state.started_at),
        "ended_at": optional_timestamp(state.ended_at),
        "depends_on": dependency_views(spec.after, state.met, over=bool(state.terminal)),
    }


def set_view(
    job_set: JobSet, spec: JobSetSpec, *, queue: str, manifest: Mapping[str, Any], children: Sequence[ChildView]
) -> JobSetView:
    """Render a set with all its details."""
    state, ended = job_set.state, job_set.state.ended_at
    return JobSetView(
        **_header(job_set, spec, queue),
        updated_at=timestamp(job_set.updated_at or job_set.created_at),
        lenient=job_set.lenient,
        managed_by=spec.managed_by,
        expires_at=None if ended is None or spec.ttl_s is None else timestamp(ended + spec.ttl_s),
        labels=dict(spec.labels),
        annotations=dict(spec.annotations),
        restart_strategy=str(spec.failure.strategy) if spec.failure else None,
        in_place_restarts=_in_place(spec, state),
        startup_order=str(spec.startup),
        success_operator=str(spec.success.operator),
        success_targets=list(spec.success.targets),
        coordinator=coordinator_endpoint(spec),
        conditions=[condition_view(condition) for condition in state.conditions],
        groups=_groups(spec, state),
        backoff=[_backoff(key, until) for key, until in state.not_before.items()],
        left_failed=sorted(state.left_failed),
        children=list(children),
        manifest=dict(manifest),
    )


def _in_place(spec: JobSetSpec, state: JobSetState) -> int | None:
    in_place = spec.failure is not None and spec.failure.strategy is RestartStrategy.IN_PLACE
    return (state.in_place_current or 0) if in_place else None


def _groups(spec: JobSetSpec, state: JobSetState) -> list[GroupView]:
    counts = {status.name: status for status in state.groups}
    return [
        _group(replicated_job, counts.get(replicated_job.name, GroupStatus(replicated_job.name)), state)
        for replicated_job in spec.replicated_jobs
    ]


def _group(group: ReplicatedJob, status: GroupStatus, state: JobSetState) -> GroupView:
    return GroupView(
        name=group.name,
        replicas=group.replicas,
        **{name: getattr(status, name) for name in _COUNTS},
        restarts=state.group_restarts.get(group.name, 0),
        job_restarts=sum(state.job_restarts.get(group.name, {}).values()),
        blamed=state.blamed.get(group.name, 0),
        max_restarts=group.max_restarts,
        parallelism=group.job.parallelism,
        completions=group.job.completions,
        depends_on={dependency.name: str(dependency.status) for dependency in group.depends_on},
    )


def _backoff(key: str, until: float) -> BackoffView:
    kind, _, name = key.partition("/")
    return BackoffView(
        replicated_job=name if kind == "group" else None, job=name if kind == "job" else None, until=timestamp(until)
    )


def child_view(job: Job, at: ChildOf, job_set: JobSet, spec: JobSetSpec, pods: KubeJobRecord | None) -> ChildView:
    """Render one job of a set; ``pods`` is ``None`` before its first attempt."""
    return ChildView(
        id=job.id,
        name=job.name,
        replicated_job=at.group,
        index=at.index,
        state=str(job.state),
        reason=job.reason,
        attempt=job.attempt,
        restarts=job_set.state.restarts_of(at.group, at.index),
        started_at=optional_timestamp(job.started_at),
        ended_at=optional_timestamp(job.ended_at),
        pods=pods_view(spec.by_name[at.group].job, pods),
    )


def log_entry(entry: SetLogEntry) -> JobSetLogEntry:
    """Render one entry of a set's log."""
    what = entry.what
    decision = set_decision_view(what) if isinstance(what, SetDecision) else None
    return JobSetLogEntry(
        seq=entry.seq,
        at=timestamp(entry.at),
        type="Decision" if isinstance(what, SetDecision) else what.type,
        reason=what.reason,
        message=what.message,
        decision=decision,
    )


def set_decision_view(decision: SetDecision) -> SetDecisionView:
    """Render the decision on one failed job."""
    restart, job_restart = decision.attempt
    return SetDecisionView(
        job=decision.job,
        attempt=1 + restart + job_restart,
        restart=restart,
        job_restart=job_restart,
        action=None if decision.action is None else decision.action.value,
        granted=decision.granted,
        reason=decision.reason,
        message=decision.message,
        rule=decision.rule,
        rule_index=decision.rule_index,
        delay_s=decision.delay_s,
        limits=limit_views(decision.limits),
        considered=considered_views(decision.considered),
    )


def set_why(explanation: Explanation[JobSet], spec: JobSetSpec) -> JobSetWhy:
    """Render why a set is in its state."""
    traces = [
        JobSetDecisionTrace(
            at=timestamp(trace.at), decision=set_decision_view(trace.decision), summary=list(trace.summary)
        )
        for trace in explanation.traces
    ]
    return JobSetWhy(
        id=explanation.of.id,
        name=explanation.of.name,
        state=explanation.of.phase(spec),
        submitted_by=explanation.of.submitted_by,
        headline=explanation.headline,
        conditions=[condition_view(trace) for trace in explanation.of.state.conditions],
        summary=list(explanation.summary),
        traces=traces,
        omitted=explanation.omitted,
    )
