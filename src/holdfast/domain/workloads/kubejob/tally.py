"""Counts the pods of a Job that have ended since the last look, each pod once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.job import evolve
from holdfast.domain.policy.decide import delay_s
from holdfast.domain.workloads.kubejob.failure_policy import PodVerdict, judge
from holdfast.domain.workloads.kubejob.model import BackoffRecord, PodAction, PodPhase, PodReplacement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.policy.model import Backoff
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod


def remaining_s(backoff: Backoff, failures: int, *, elapsed_s: float) -> float:
    """Return how long still to wait: ``min(base * 2^(n-1), cap)`` from the last failure on."""
    if failures <= 0:
        return 0.0
    return max(0.0, delay_s(backoff, failures, seed="") - elapsed_s)


def updated(record: BackoffRecord, failed: Sequence[float], succeeded: Sequence[float]) -> BackoffRecord:
    """Return the record after pods ended; a success clears the failures up to it.

    Args:
        record: Before.
        failed: When the newly failed pods ended; each one counts, ignored ones too.
        succeeded: When the newly succeeded pods ended.
    """
    if succeeded:
        last = max(succeeded)
        failed = [at for at in failed if at > last]
        record = BackoffRecord()
    if not failed:
        return record
    return BackoffRecord(record.failures + len(failed), max(failed))


@dataclass(frozen=True, slots=True)
class Tally:
    """A Job's state with every pod that has ended counted, and those that failed since the last look."""

    state: KubeJobState
    failures: tuple[tuple[Pod, PodVerdict], ...] = ()

    @property
    def fatal(self) -> PodVerdict | None:
        """The first verdict that fails the Job."""
        return next((verdict for _, verdict in self.failures if verdict.action is PodAction.FAIL_JOB), None)


def waits_until_gone(spec: KubeJobSpec) -> bool:
    """Whether a pod counts and is replaced only once it has ended, not when it is being deleted."""
    return spec.failure_rules is not None or spec.replacement is PodReplacement.FAILED


def has_place(spec: KubeJobSpec, pod: Pod) -> bool:
    """Whether a pod's index is still one of the Job's; it may not be after shrinking."""
    return pod.index is None or spec.completions is None or pod.index < spec.completions


def tally(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod]) -> Tally:
    """Count the pods that have ended since the last look."""
    if not pods and not (state.active or state.ready or state.terminating or state.counted):
        return Tally(state)
    fresh = [pod for pod in pods if pod.name not in state.counted and has_place(spec, pod)]
    succeeded = [pod for pod in fresh if pod.phase is PodPhase.SUCCEEDED]
    failed = [pod for pod in fresh if _failed(spec, pod)]
    completed = state.completed_indexes | {pod.index for pod in succeeded if pod.index is not None}
    verdicts = [(pod, judge(spec.failure_rules, pod)) for pod in failed]
    ignored = sum(verdict.action is PodAction.IGNORE for _, verdict in verdicts)
    seen = {pod.name for pod in pods}
    counted = state.counted & seen | {pod.name for pod in (*succeeded, *failed)}
    new = evolve(
        state,
        active=sum(pod.active for pod in pods),
        ready=sum(pod.active and pod.ready for pod in pods),
        terminating=sum(pod.deleting and not pod.ended for pod in pods),
        succeeded=len(completed) if spec.indexed else state.succeeded + len(succeeded),
        failed=state.failed + len(failed) - ignored,
        ignored=state.ignored + ignored,
        counted=counted,
        completed_indexes=completed,
        backoff=updated(state.backoff, [p.finished_at for p in failed], [p.finished_at for p in succeeded]),
    )
    if spec.backoff_limit_per_index is not None:
        new = _per_index(spec.backoff_limit_per_index, new, verdicts)
    return Tally(new, tuple(verdicts))


def _failed(spec: KubeJobSpec, pod: Pod) -> bool:
    if pod.phase is PodPhase.FAILED:
        return True
    # One being deleted may never be seen to fail, for example when its node is gone.
    return pod.deleting and not pod.ended and not waits_until_gone(spec) and not spec.suspend


def _per_index(limit: int, state: KubeJobState, verdicts: Iterable[tuple[Pod, PodVerdict]]) -> KubeJobState:
    failures = dict(state.index_failures)
    lost = set(state.failed_indexes)
    for pod, verdict in verdicts:
        if pod.index is None or pod.index in state.completed_indexes:
            continue
        ignored = verdict.action is PodAction.IGNORE
        if verdict.action is PodAction.FAIL_INDEX or (not ignored and pod.index_failures >= limit):
            lost.add(pod.index)
        failures[pod.index] = (pod.index_failures + (not ignored), pod.index_ignored + ignored, pod.finished_at)
    for index in state.completed_indexes | lost:
        failures.pop(index, None)
    return evolve(state, failed_indexes=frozenset(lost), index_failures=failures)
