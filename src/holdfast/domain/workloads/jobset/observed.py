"""Shows a job made of pods the way its set sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.state import Child, ChildPhase

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import CreateJob
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord


def child_of(order: CreateJob, record: KubeJobRecord, template: KubeJobSpec) -> Child:
    """Show a job to its set.

    Args:
        order: The order it was created by.
        record: What is remembered of it.
        template: Its set's template as of now.
    """
    state = record.state
    ended = state.finished
    target = state.condition("FailureTarget") if ended is None else None
    told = ended or target
    phase = ChildPhase.ACTIVE
    if ended is not None:
        phase = ChildPhase.SUCCEEDED if ended.type == "Complete" else ChildPhase.FAILED
    return Child(
        name=order.name,
        group=order.group,
        index=order.index,
        global_index=order.global_index,
        restart=record.restart,
        job_restart=record.job_restart,
        phase=phase,
        reason=told.reason if told is not None else "",
        message=told.message if told is not None else "",
        failed_at=told.since if told is not None else 0.0,
        certain=target is not None,
        active_pods=state.active,
        ready_pods=state.ready,
        succeeded_pods=state.succeeded,
        suspended=record.suspended,
        size=_size(record, template),
        deleting_since=record.deleting_since,
    )


def _size(record: KubeJobRecord, template: KubeJobSpec) -> tuple[int, int | None] | None:
    """Return a job's size where it differs from the template's."""
    wanted = (template.parallelism, template.completions)
    if record.parallelism is None or (record.parallelism, record.completions) == wanted:
        return None
    return record.parallelism, record.completions
