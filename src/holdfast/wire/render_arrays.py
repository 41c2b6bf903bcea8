"""Shows arrays to the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.wire.arrays import ArrayAccepted, ArrayLink, ArrayView, ArrayWhy, CancelGroupView, FailureGroupView
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.problems import problem_entry
from holdfast.wire.render_jobs import dependency_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.workloads.array.model import Array, ArraySpec, Origin
    from holdfast.errors import Problem

_VERBS = {
    "Queued": "waits",
    "Running": "is running",
    "Held": "is held",
    "Stopping": "is stopping",
    "Deleting": "is being deleted",
}


def array_view(
    array: Array,
    spec: ArraySpec,
    *,
    left_alone: str = "",
    **progress: Any,  # noqa: ANN401 - numbers
) -> ArrayView:
    """Show an array.

    Args:
        array: What is stored of it.
        spec: What it should be.
        left_alone: Why nobody looks after it, which goes before anything else.
        progress: ``waiting``, ``running`` and ``eta_s``.
    """
    reason = left_alone or array.reason(spec)
    return ArrayView(**_header(array, spec, array.phase(spec), reason), **progress)


def array_accepted(array: Array, spec: ArraySpec, warnings: Iterable[Problem]) -> ArrayAccepted:
    """Show an array that was just submitted."""
    told = [problem_entry(warning) for warning in warnings]
    return ArrayAccepted(
        **_header(array, spec, "Queued", array.state.reason), waiting=spec.total, running=0, warnings=told
    )


_COUNTED = ("tasks succeeded", "tasks did not succeed")
"""Ends of reasons that say no more than the counts beside them."""


def array_why(
    view: ArrayView,
    groups: Iterable[tuple[str, int | None, str, list[int], str]],
    omitted: int,
    reruns: Iterable[Array] = (),
    cancelled: Iterable[tuple[str, list[int], str]] = (),
    paused: Sequence[str] = (),
) -> ArrayWhy:
    """Show why an array is where it is.

    Args:
        view: The array.
        groups: Of failed tasks: a cause, an exit code, a decision, indexes and an example each.
        omitted: Failed tasks in none of them.
        reruns: Arrays that run tasks of it again.
        cancelled: Groups of cancelled tasks: a reason, indexes and an example each.
        paused: That nothing is started, if so.
    """
    shown = [
        FailureGroupView(
            cause=cause,
            exit_code=code,
            decision=decision,
            count=len(indexes),
            indexes=format_indexes(indexes),
            example=example,
        )
        for cause, code, decision, indexes, example in groups
    ]
    return ArrayWhy(
        array=view,
        headline=" ".join((_headline(view), *paused)),
        groups=shown,
        cancelled=[
            CancelGroupView(reason=reason, count=len(indexes), indexes=format_indexes(indexes), example=example)
            for reason, indexes, example in cancelled
        ],
        reruns=[*map(array_link, reruns)],
        omitted=omitted,
    )


def array_link(other: Origin | Array) -> ArrayLink:
    """Name an array."""
    return ArrayLink(id=other.id, name=other.name)


def _headline(view: ArrayView) -> str:
    counts = {"running": view.running, "waiting": view.waiting, "succeeded": view.succeeded, "failed": view.failed}
    counts["cancelled"] = view.cancelled
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none yet"
    tasks = f"{view.total} tasks" if view.rerun_of is None else f"{view.total} tasks rerun of {view.rerun_of.name}"
    if view.state == "Waiting":
        return f"Array {view.name} {view.reason}. Of {tasks}: {told}."
    why = f": {view.reason}" if view.reason and not view.reason.endswith(_COUNTED) else ""
    verb = _VERBS.get(view.state, f"has {'been cancelled' if view.state == 'Cancelled' else view.state.lower()}")
    return f"Array {view.name} {verb}{why}. Of {tasks}: {told}."


def _header(array: Array, spec: ArraySpec, state: str, reason: str) -> dict[str, Any]:
    known = array.state
    return {
        "id": array.id,
        "name": array.name,
        "queue": spec.job.queue,
        "state": state,
        "reason": reason,
        "total": spec.total,
        "succeeded": known.succeeded,
        "failed": known.failed,
        "cancelled": known.cancelled,
        "max_running": spec.max_running,
        "rerun_of": array_link(array.origins[0]) if array.origins else None,
        "indices": None if spec.only is None else format_indexes(spec.every_index()),
        "depends_on": dependency_views(spec.job.after, spec.not_waited_for(known), over=bool(known.made)),
        "labels": dict(spec.job.labels),
        "submitted_by": array.submitted_by,
        "group": array.group,
        "created_at": timestamp(array.created_at),
        "ended_at": optional_timestamp(known.ended_at),
    }
