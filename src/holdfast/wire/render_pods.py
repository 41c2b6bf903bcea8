"""Renders the pods of jobs as wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.wire.base import timestamp
from holdfast.wire.jobs import ConditionView, PodsView

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import SetCondition
    from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobSpec
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord


def pods_view(spec: KubeJobSpec | None, record: KubeJobRecord | None) -> PodsView:
    """Render a job's pods.

    Args:
        spec: The job's specification, if it is still known.
        record: The record of its pods; ``None`` before the first one.
    """
    parallelism = spec.parallelism if spec else None
    completions = spec.completions if spec else None
    if record is None:
        return PodsView(parallelism=parallelism, completions=completions, suspended=spec.suspend if spec else False)
    state, resized = record.state, record.parallelism is not None
    return PodsView(
        parallelism=record.parallelism if resized else parallelism,
        completions=record.completions if resized else completions,
        active=state.active,
        ready=state.ready,
        succeeded=state.succeeded,
        failed=state.failed,
        terminating=state.terminating,
        restarts=sum(pod.restarts for pod in record.pods),
        completed_indexes=format_indexes(state.completed_indexes),
        failed_indexes=format_indexes(state.failed_indexes),
        suspended=record.suspended,
        conditions=[condition_view(condition) for condition in state.conditions],
    )


def condition_view(condition: SetCondition | JobCondition) -> ConditionView:
    """Render a condition."""
    return ConditionView(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        since=timestamp(condition.since),
    )
