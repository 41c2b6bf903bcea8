"""Renders arrays as wire models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.job import JobState
from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.wire.arrays import ArrayAccepted, ArrayLink, ArrayView, ArrayWhy, CancelGroupView, FailureGroupView
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.problems import problem_entry
from holdfast.wire.render_jobs import dependency_views

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.workloads.array.model import Array, ArraySpec, Origin
    from holdfast.domain.workloads.array.progress import Progress
    from holdfast.domain.workloads.explanation import Explanation, TaskGroup
    from holdfast.errors import Problem


def array_view(progress: Progress) -> ArrayView:
    """Render an array with its progress."""
    header = _header(progress.array, progress.spec, progress.state, progress.reason)
    return ArrayView(**header, waiting=progress.waiting, running=progress.running, eta_s=progress.eta_s)


def array_accepted(array: Array, spec: ArraySpec, warnings: Iterable[Problem]) -> ArrayAccepted:
    """Render an array that was just submitted."""
    entries = [problem_entry(warning) for warning in warnings]
    header = _header(array, spec, array.phase(spec), array.reason(spec))
    return ArrayAccepted(**header, waiting=spec.total, running=0, warnings=entries)


def array_why(explanation: Explanation[Progress]) -> ArrayWhy:
    """Render why an array is in its state."""
    return ArrayWhy(
        array=array_view(explanation.of),
        headline=explanation.headline,
        groups=[
            FailureGroupView(cause=group.why, exit_code=group.exit_code, decision=group.decision, **_tasks(group))
            for group in explanation.groups
            if group.state is JobState.FAILED
        ],
        cancelled=[
            CancelGroupView(reason=group.why, **_tasks(group))
            for group in explanation.groups
            if group.state is JobState.CANCELLED
        ],
        reruns=[*map(array_link, explanation.reruns)],
        omitted=explanation.omitted,
    )


def _tasks(group: TaskGroup) -> dict[str, Any]:
    indexes = [job.child.index for job in group.jobs if job.child is not None]
    return {"count": len(indexes), "indexes": format_indexes(indexes), "example": group.jobs[-1].reason}


def array_link(other: Origin | Array) -> ArrayLink:
    """Render a reference to an array."""
    return ArrayLink(id=other.id, name=other.name)


def _header(array: Array, spec: ArraySpec, state: str, reason: str) -> dict[str, Any]:
    record = array.state
    return {
        "id": array.id,
        "name": array.name,
        "queue": spec.job.queue,
        "state": state,
        "reason": reason,
        "total": spec.total,
        "succeeded": record.succeeded,
        "failed": record.failed,
        "cancelled": record.cancelled,
        "max_running": spec.max_running,
        "rerun_of": array_link(array.origins[0]) if array.origins else None,
        "indices": None if spec.only is None else format_indexes(spec.every_index()),
        "depends_on": dependency_views(spec.job.after, spec.not_waited_for(record), over=bool(record.made)),
        "labels": dict(spec.job.labels),
        "submitted_by": array.submitted_by,
        "group": array.group,
        "created_at": timestamp(array.created_at),
        "ended_at": optional_timestamp(record.ended_at),
    }
