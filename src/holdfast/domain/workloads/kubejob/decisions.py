"""The consequence of each failed pod, as the same record that any retry leaves: the rule, the limits, the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from holdfast.domain.policy.decide import GLOBAL_LIMIT
from holdfast.domain.policy.model import Action, Decision, DecisionCode, LimitUse
from holdfast.domain.workloads.kubejob.model import PodAction, PodDecision
from holdfast.domain.workloads.kubejob.tally import remaining_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.workloads.kubejob.failure_policy import PodVerdict
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod
    from holdfast.domain.workloads.kubejob.tally import Tally

FAILURE_POLICY = "podFailurePolicy"
"""Stands for the policy in decisions that one of its rules made."""
BACKOFF = "backoffLimit"
INDEX_BACKOFF = "backoffLimitPerIndex"
_ACTIONS = {DecisionCode.RETRY: Action.RETRY, DecisionCode.IGNORE: Action.IGNORE}


def is_capped(tally: Tally, cap: int | None) -> bool:
    """Whether ``globalMaxRetries`` forbids to replace the pods that have just failed; 0 forbids it for ignored ones."""
    if cap is None or not tally.failures:
        return False
    return tally.state.failed > cap or (cap == 0 and tally.state.ignored > 0)


def decisions_about(
    spec: KubeJobSpec, tally: Tally, because: str | None, now: float, *, cap: int | None
) -> Iterator[PodDecision]:
    """Say of each pod that has just failed what follows.

    Args:
        spec: Of its Job.
        tally: The Job with these pods counted.
        because: Why the Job ends with this look, if it does.
        now: The time.
        cap: ``globalMaxRetries``.
    """
    used = tally.state.failed - (len(tally.failures) - tally.ignored)
    for pod, verdict in tally.failures:
        decision = _if_it_goes_on(spec, tally.state, pod, verdict, used, now)
        if because is not None and decision.grants_retry:
            code, limits = DecisionCode.FAIL_DEFAULT, decision.limits
            if is_capped(tally, cap):
                code, limits = DecisionCode.GLOBAL_LIMIT, (LimitUse(GLOBAL_LIMIT, used, cap),)
            elif limits and limits[0].limit is not None and limits[0].used >= limits[0].limit:
                code = DecisionCode.POLICY_LIMIT
            decision = _decision(spec, verdict, code, because, limits=limits)
        yield PodDecision(pod.name, decision)
        used += verdict.action is not PodAction.IGNORE


def _if_it_goes_on(
    spec: KubeJobSpec, state: KubeJobState, pod: Pod, verdict: PodVerdict, used: int, now: float
) -> Decision:
    """Return what follows for a pod unless its Job ends; one limit at most counts it."""
    match verdict.action:
        case PodAction.FAIL_JOB:
            return _decision(spec, verdict, DecisionCode.FAIL_RULE, verdict.message)
        case PodAction.FAIL_INDEX:
            reason = f"index {pod.index} has failed"
            return _decision(spec, verdict, DecisionCode.FAIL_RULE, reason)
        case PodAction.IGNORE:
            reason = "replaced, and counted against no limit"
            return _decision(spec, verdict, DecisionCode.IGNORE, reason)
        case PodAction.COUNT:
            pass
        case _:
            assert_never(verdict.action)
    # It counts, and is replaced unless its index has failed too often.
    if spec.backoff_limit_per_index is None or pod.index is None:
        limits = (LimitUse(BACKOFF, used, spec.backoff_limit),)
        failures, last = state.backoff.failures, state.backoff.last_failure_at
    else:
        limits = (LimitUse(INDEX_BACKOFF, pod.index_failures, spec.backoff_limit_per_index),)
        counted, ignored, last = state.index_failures.get(pod.index, (0, 0, 0.0))
        failures = counted + ignored
        if pod.index in state.failed_indexes:
            reason = f"index {pod.index} has failed"
            return _decision(spec, verdict, DecisionCode.POLICY_LIMIT, reason, limits=limits)
    delay_s = remaining_s(spec.backoff, failures, elapsed_s=now - last)
    return _decision(spec, verdict, DecisionCode.RETRY, "replaced", limits=limits, delay_s=delay_s)


def _decision(
    spec: KubeJobSpec,
    verdict: PodVerdict,
    code: DecisionCode,
    reason: str,
    *,
    limits: tuple[LimitUse, ...] = (),
    delay_s: float = 0.0,
) -> Decision:
    rule = verdict.rule
    name = None if rule is None or spec.failure_rules is None else spec.failure_rules[rule].name or f"rule{rule}"
    policy = None if rule is None else FAILURE_POLICY
    action = _ACTIONS.get(code, Action.FAIL)
    return Decision(action, code, reason, policy, name, rule, limits=limits, delay_s=delay_s)
