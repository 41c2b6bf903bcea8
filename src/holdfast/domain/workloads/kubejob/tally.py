"""Counts the pods of a Job that have ended since the last look, each pod once, and decides about each that failed.

The decision about a failed pod is the same record that any retry leaves: the rule, the limits, the wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import SPENT, decide, delay_s, summarize_decision
from holdfast.domain.policy.model import Considered, RetryHistory, RetrySettings
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.judge import turned_down
from holdfast.domain.workloads.kubejob.model import (
    POD_ENDED,
    BackoffRecord,
    PodAction,
    PodDecision,
    PodPhase,
    PodReplacement,
)
from holdfast.domain.workloads.kubejob.rulesets import BACKOFF, INDEX_BACKOFF, PodVerdict, as_seen, judge, of_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.domain.policy.model import Backoff, Decision
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod
    from holdfast.domain.workloads.kubejob.rulesets import PodVerdict


def remaining_s(backoff: Backoff, failures: int, *, elapsed_s: float) -> float:
    """Return the remaining delay: ``min(base * 2^(n-1), cap)`` since the last failure."""
    if failures <= 0:
        return 0.0
    return max(0.0, delay_s(backoff, failures, seed="") - elapsed_s)


def updated(record: BackoffRecord, failed: Sequence[float], succeeded: Sequence[float]) -> BackoffRecord:
    """Return the record after pods ended; a success clears the failures up to it.

    Args:
        record: The record before.
        failed: End times of newly failed pods; all count, even ignored ones.
        succeeded: End times of newly succeeded pods.
    """
    if succeeded:
        last = max(succeeded)
        failed = [at for at in failed if at > last]
        record = BackoffRecord()
    if not failed:
        return record
    return BackoffRecord(record.failures + len(failed), max(failed))


class Tally(Struct, frozen=True):
    """A Job's state with all ended pods counted, and the pods that failed since the last look."""

    state: KubeJobState
    failures: tuple[tuple[Pod, PodVerdict], ...] = ()
    fatal: PodVerdict | None = None
    """The first verdict that fails the Job."""
    ignored: int = 0
    """How many of these failures do not count against a limit."""


def waits_until_gone(spec: KubeJobSpec) -> bool:
    """Whether a pod counts and is replaced only once it has ended, rather than when it is being deleted."""
    return spec.failure_rules is not None or spec.replacement is PodReplacement.FAILED


def has_place(spec: KubeJobSpec, pod: Pod) -> bool:
    """Whether a pod's index is still one of the Job's; it may not be after shrinking."""
    return pod.index is None or spec.completions is None or pod.index < spec.completions


def tally(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float) -> Tally:
    """Count the pods that have ended since the last look; end times in the future, by a node's clock, count as now."""
    if not pods and not (state.active or state.ready or state.terminating or state.counted):
        return Tally(state)
    # A pod that is being deleted may never be seen to fail, for example if its node is gone.
    deleted_fails = not waits_until_gone(spec) and not spec.suspend
    active = ready = terminating = 0
    counted: set[str] = set()
    completed: set[int] = set()
    failed: list[Pod] = []
    succeeded: list[float] = []
    for pod in pods:
        ended = pod.phase in POD_ENDED
        if not ended:
            terminating += pod.deleting
            active += not pod.deleting
            ready += pod.ready and not pod.deleting
        if pod.name in state.counted:
            counted.add(pod.name)
        elif (ended or (pod.deleting and deleted_fails)) and has_place(spec, pod):
            counted.add(pod.name)
            if pod.phase is not PodPhase.SUCCEEDED:
                failed.append(pod)
                continue
            succeeded.append(min(pod.finished_at, now))
            if pod.index is not None:
                completed.add(pod.index)
    all_completed = state.completed_indexes | completed
    new = evolve(
        state,
        active=active,
        ready=ready,
        terminating=terminating,
        succeeded=len(all_completed) if spec.indexed else state.succeeded + len(succeeded),
        counted=frozenset(counted),
        completed_indexes=all_completed,
    )
    if state.stopped_at_end:
        new = _as_they_ended(spec, new, pods)
    return _with_failures(spec, new, failed, succeeded, now) if failed or succeeded else Tally(new)


def _as_they_ended(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod]) -> KubeJobState:
    """Count pods that a decided Job stopped as succeeded instead of failed, if their programs had exited with 0."""
    stopped = [pod for pod in pods if pod.name in state.stopped_at_end]
    done = [pod for pod in stopped if pod.phase is PodPhase.SUCCEEDED and has_place(spec, pod)]
    completed = state.completed_indexes | {pod.index for pod in done if pod.index is not None}
    return evolve(
        state,
        failed=state.failed - (len(done) if state.condition("FailureTarget") is not None else 0),
        succeeded=len(completed) if spec.indexed else state.succeeded + len(done),
        completed_indexes=completed,
        stopped_at_end=frozenset(pod.name for pod in stopped if not pod.ended),
    )


def _with_failures(
    spec: KubeJobSpec, state: KubeJobState, failed: Sequence[Pod], succeeded: Sequence[float], now: float
) -> Tally:
    """Judge and count the pods that failed."""
    verdicts: list[tuple[Pod, PodVerdict]] = []
    failed_at: list[float] = []
    fatal, ignored = None, 0
    for pod in failed:
        verdict = judge(spec, pod)
        verdicts.append((pod, verdict))
        failed_at.append(min(pod.finished_at, now))
        ignored += verdict.action is PodAction.IGNORE
        if fatal is None and verdict.action is PodAction.FAIL_JOB:
            fatal = verdict
    new = evolve(
        state,
        failed=state.failed + len(failed) - ignored,
        ignored=state.ignored + ignored,
        backoff=updated(state.backoff, failed_at, succeeded),
    )
    if spec.backoff_limit_per_index is not None:
        new = _per_index(spec.backoff_limit_per_index, new, verdicts, now)
    return Tally(new, tuple(verdicts), fatal, ignored)


def _per_index(limit: int, state: KubeJobState, verdicts: Iterable[tuple[Pod, PodVerdict]], now: float) -> KubeJobState:
    failures = dict(state.index_failures)
    lost = set(state.failed_indexes)
    for pod, verdict in verdicts:
        if pod.index is None or pod.index in state.completed_indexes:
            continue
        ignored, at = verdict.action is PodAction.IGNORE, min(pod.finished_at, now)
        if verdict.action is PodAction.FAIL_INDEX or (not ignored and pod.index_failures >= limit):
            lost.add(pod.index)
        failures[pod.index] = (pod.index_failures + (not ignored), pod.index_ignored + ignored, at)
    for index in state.completed_indexes | lost:
        failures.pop(index, None)
    return evolve(state, failed_indexes=frozenset(lost), index_failures=failures)


def decisions_about(spec: KubeJobSpec, tally: Tally, now: float, *, cap: int | None) -> Iterator[PodDecision]:
    """Decide about each pod that has just failed, as if its Job continues; each counts for the following ones.

    Args:
        spec: The Job's specification.
        tally: The Job with these pods counted.
        now: The time.
        cap: ``globalMaxRetries``.
    """
    policies, settings = of_job(spec), RetrySettings(global_max_retries=cap)
    used = tally.state.failed - (len(tally.failures) - tally.ignored)
    for pod, verdict in tally.failures:
        counters = ((BACKOFF, used), (INDEX_BACKOFF, pod.index_failures))
        decision = decide(policies, as_seen(pod), RetryHistory(pod.name, counters=counters, total=used), settings)
        if decision.grants_retry:
            decision = evolve(decision, delay_s=_wait_s(spec, tally.state, pod, now))
        elif not _is_jobs_limit(decision):
            reason = verdict.message if verdict.action is PodAction.FAIL_JOB else f"index {pod.index} has failed"
            decision = evolve(decision, reason=reason)
        yield PodDecision(pod.name, _named(decision, spec, verdict))
        used += verdict.action is not PodAction.IGNORE


def _named(decision: Decision, spec: KubeJobSpec, verdict: PodVerdict) -> Decision:
    """Add the rule that matched to a decision, whichever limit decided."""
    if decision.rule is not None or verdict.rule is None or spec.failure_rules is None:
        return decision
    rule = of_job(spec).rules[verdict.rule]
    return evolve(decision, policy=rule.policy, rule=rule.name, rule_index=rule.index)


def _wait_s(spec: KubeJobSpec, state: KubeJobState, pod: Pod, now: float) -> float:
    """Return how long a Job, or an index with its own back-off, still waits before it replaces a pod."""
    if spec.backoff_limit_per_index is None or pod.index is None:
        failures, last = state.backoff.failures, state.backoff.last_failure_at
    else:
        counted, ignored, last = state.index_failures.get(pod.index, (0, 0, 0.0))
        failures = counted + ignored
    return remaining_s(spec.backoff, failures, elapsed_s=now - last)


def as_it_ends(decided: Iterable[PodDecision], because: str) -> Iterator[PodDecision]:
    """Turn down the replacement of pods of a Job that ends with this look."""
    for pod, decision in decided:
        if decision.grants_retry:
            yield PodDecision(pod, turned_down(decision, DecisionCode.FAIL_DEFAULT, because))
        else:
            yield PodDecision(pod, evolve(decision, reason=because) if _is_jobs_limit(decision) else decision)


def _is_jobs_limit(decision: Decision) -> bool:
    """Whether a limit of the whole Job was used up, which ends it."""
    return decision.code in SPENT and decision.limits[-1].name != INDEX_BACKOFF


def after_its_pod(decision: Decision, declined: Decision) -> Decision:
    """Add to a Job's decision the one before it, which did not restart the program in its pod."""
    if declined.code is DecisionCode.GLOBAL_LIMIT:
        # The Job has the same limit.
        return decision
    considered = Considered(
        declined.policy or "", declined.rule or "", matched=True, because=summarize_decision(declined)
    )
    return evolve(decision, considered=(considered, *decision.considered))
