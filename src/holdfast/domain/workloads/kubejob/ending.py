"""Decides whether a Job has failed or is complete.

Checks in the Job controller's order: an earlier ending; FailJob; backoffLimit; activeDeadlineSeconds; failed indexes;
successPolicy; completions. Failure beats success in one look, a recorded success beats any later failure. Pods ended
because the Job was active too long fail it by its deadline, however they ended. Reasons and messages are an interface:
rules of job sets match them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.workloads.kubejob.model import PodPhase, RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod
    from holdfast.domain.workloads.kubejob.tally import Tally


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a Job ends."""

    failed: bool
    reason: str
    message: str


BACKOFF_LIMIT = JobEnding(
    failed=True, reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit"
)
DEADLINE = JobEnding(failed=True, reason="DeadlineExceeded", message="Job was active longer than specified deadline")
MAX_FAILED_INDEXES = JobEnding(
    failed=True,
    reason="MaxFailedIndexesExceeded",
    message="Job has exceeded the specified maximal number of failed indexes",
)
FAILED_INDEXES = JobEnding(failed=True, reason="FailedIndexes", message="Job has failed indexes")
COMPLETIONS = JobEnding(failed=False, reason="CompletionsReached", message="Reached expected number of succeeded pods")
FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a Job can have failed, unless its pod failure policy names a reason of its own."""


def ending_of(spec: KubeJobSpec, tally: Tally, pods: Sequence[Pod], now: float) -> JobEnding | None:
    """Judge a Job whose pods are counted; ``None`` while it goes on."""
    state = tally.state
    if before := _decided_before(state):
        return before
    if past_deadline(spec, state, now) and any(pod.overdue for pod in pods):
        return DEADLINE
    if tally.fatal is not None:
        return JobEnding(failed=True, reason=tally.fatal.reason, message=tally.fatal.message)
    if state.failed > spec.backoff_limit or _restarted_too_often(spec, pods):
        return BACKOFF_LIMIT
    if past_deadline(spec, state, now):
        return DEADLINE
    return _lost_indexes(spec, state) or _success(spec, state)


def _decided_before(state: KubeJobState) -> JobEnding | None:
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        if found := state.condition(type_):
            return JobEnding(failed=type_ == "FailureTarget", reason=found.reason, message=found.message)
    return None


def _restarted_too_often(spec: KubeJobSpec, pods: Sequence[Pod]) -> bool:
    """Whether containers were restarted in place as often as the limit says: ``>=``, where failed pods are ``>``."""
    if spec.restart_policy is not RestartPolicy.ON_FAILURE:
        return False
    living = {PodPhase.PENDING, PodPhase.RUNNING}
    restarts = sum(pod.container_restarts for pod in pods if pod.phase in living)
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit


def past_deadline(spec: KubeJobSpec, state: KubeJobState, now: float) -> bool:
    """Whether a Job that is not suspended has reached its active deadline."""
    if spec.suspend or spec.active_deadline_s is None or state.started_at is None:
        return False
    return now - state.started_at >= spec.active_deadline_s


def _lost_indexes(spec: KubeJobSpec, state: KubeJobState) -> JobEnding | None:
    if not spec.indexed or spec.backoff_limit_per_index is None or spec.completions is None:
        return None
    lost = len(state.failed_indexes)
    if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
        return MAX_FAILED_INDEXES
    return FAILED_INDEXES if lost and lost + state.succeeded >= spec.completions else None


def _success(spec: KubeJobSpec, state: KubeJobState) -> JobEnding | None:
    rule = satisfied_rule(spec, state.completed_indexes)
    if rule is not None:
        return JobEnding(failed=False, reason="SuccessPolicy", message=f"Matched rules at index {rule}")
    if spec.completions is None:
        return COMPLETIONS if state.succeeded and not state.active else None
    return COMPLETIONS if state.succeeded >= spec.completions else None


def satisfied_rule(spec: KubeJobSpec, completed: frozenset[int]) -> int | None:
    """Return the first rule of the successPolicy that is satisfied."""
    for place, rule in enumerate(spec.success_rules if spec.indexed else ()):
        done = completed if rule.indexes is None else completed & rule.indexes
        wanted = rule.count if rule.count is not None else len(rule.indexes or ())
        if len(done) >= wanted:
            return place
    return None
