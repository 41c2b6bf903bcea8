"""Turns what is remembered of a job's pods into wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.wire.base import timestamp
from holdfast.wire.jobs import ConditionView, PodsView

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import SetCondition
    from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobSpec
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord


def pods_view(asked: KubeJobSpec | None, known: KubeJobRecord | None) -> PodsView:
    """Show a job's pods.

    Args:
        asked: What the job asks for, as far as it is still known.
        known: What is remembered of its pods; ``None`` before its first one.
    """
    parallelism = asked.parallelism if asked else None
    completions = asked.completions if asked else None
    if known is None:
        return PodsView(parallelism=parallelism, completions=completions, suspended=asked.suspend if asked else False)
    state, resized = known.state, known.parallelism is not None
    return PodsView(
        parallelism=known.parallelism if resized else parallelism,
        completions=known.completions if resized else completions,
        active=state.active,
        ready=state.ready,
        succeeded=state.succeeded,
        failed=state.failed,
        terminating=state.terminating,
        restarts=sum(pod.restarts for pod in known.pods),
        completed_indexes=format_indexes(state.completed_indexes),
        failed_indexes=format_indexes(state.failed_indexes),
        suspended=known.suspended,
        conditions=[condition_view(one) for one in state.conditions],
    )


def condition_view(condition: SetCondition | JobCondition) -> ConditionView:
    """Show a condition."""
    return ConditionView(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        since=timestamp(condition.since),
    )
