"""Decides what happens after a failure; a pure function of policies, failure, history and settings.

The order of checks determines the reason reported (semantics, section 2): no failure; a cause that is never
retried; the kill switch; the global cap; the first rule that matches; its ``Fail`` or ``Hold``; its limit; a retry.
``Ignore`` is a retry that is not counted, so the kill switch stops it and no limit does; its delay grows
with the attempts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.delay import delay_in_words, delay_s
from holdfast.domain.failure import NEVER_RETRIED
from holdfast.domain.policy.growth import grow
from holdfast.domain.policy.model import Action, Decision, DecisionCode, LimitUse

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.compiled import CompiledRule, PolicySet
    from holdfast.domain.policy.model import RetryHistory, RetrySettings

GLOBAL_LIMIT = "globalMaxRetries"
"""The name of the cap over all rules, in ``LimitUse`` as in the settings."""


def decide(
    policies: PolicySet,
    failure: Failure | None,
    history: RetryHistory,
    settings: RetrySettings,
    *,
    draw: float = 0.0,
    explain: bool = False,
) -> Decision:
    """Decide what happens after a failure.

    Args:
        policies: Those that apply to the job, compiled.
        failure: What went wrong; ``None`` if unknown.
        history: Retries granted before this failure.
        settings: What the operator set for everyone, as of now.
        draw: In [0, 1), for random jitter.
        explain: Also say which rules were tried, why each did or did not match, and how the delay came about; the
            decision is the same.

    Returns:
        The decision. Rules are tried only if no earlier check decides.
    """
    if failure is None:
        return Decision(Action.FAIL, DecisionCode.NO_ERROR, "no error information available")
    early = _before_rules(failure, history, settings, may_ignore=policies.may_ignore)
    if early is not None:
        return early
    rule = policies.first_match(failure)
    decision = _by_rule(rule, failure, history, settings, draw)
    if not explain:
        return decision
    return replace(
        decision,
        considered=policies.considered(failure),
        delay_because=_delay_because(decision, rule, history, settings),
    )


def _before_rules(
    failure: Failure, history: RetryHistory, settings: RetrySettings, *, may_ignore: bool
) -> Decision | None:
    """Make the checks that need no rule; an ``Ignore`` passes the global cap, so rules are needed to see one."""
    if failure.cause in NEVER_RETRIED:
        return Decision(Action.FAIL, DecisionCode.NEVER_RETRIED, f"cause {failure.cause} is never retried")
    cap = settings.global_max_retries
    if cap is None or history.total < cap or (may_ignore and cap):
        return None
    return _globally_stopped(history.total, cap)


def _globally_stopped(total: int, cap: int) -> Decision:
    reason = f"global max retries exceeded ({total}/{cap})" if cap else "global max retries is 0, retries disabled"
    return Decision(Action.FAIL, DecisionCode.GLOBAL_LIMIT, reason, limits=(LimitUse(GLOBAL_LIMIT, total, cap),))


def _by_rule(
    rule: CompiledRule, failure: Failure, history: RetryHistory, settings: RetrySettings, draw: float
) -> Decision:
    """Apply the rule that matched: its action, then its limit."""
    action, cap, total = rule.action, settings.global_max_retries, history.total
    if cap is not None and total >= cap and action is not Action.IGNORE:
        return _globally_stopped(total, cap)
    overall = LimitUse(GLOBAL_LIMIT, total, cap)
    match action:
        case Action.FAIL:
            code = DecisionCode.FAIL_DEFAULT if rule.index is None else DecisionCode.FAIL_RULE
            return _ended(rule, Action.FAIL, code, rule.reason, (overall,))
        case Action.HOLD:
            return _ended(rule, Action.HOLD, DecisionCode.HOLD, rule.reason, (overall,))
        case Action.IGNORE:
            delay = delay_s(rule.backoff or settings.default_backoff, history.attempt, seed=history.job_id, draw=draw)
            return _granted(rule, failure, history, delay, (overall,))
        case Action.RETRY:
            return _counted(rule, failure, history, settings, overall, draw)
        case _:
            assert_never(action)


def _counted(
    rule: CompiledRule,
    failure: Failure,
    history: RetryHistory,
    settings: RetrySettings,
    overall: LimitUse,
    draw: float,
) -> Decision:
    """Grant a retry unless the rule's limit is used up."""
    cap = settings.global_max_retries
    used = _used(history, rule.counter)
    limit = cap if rule.limit is None else rule.limit
    limits = (overall, LimitUse(rule.counter, used, limit))
    if limit is not None and used >= limit:
        reason = f"policy retry limit exceeded ({used}/{limit})"
        return _ended(rule, Action.FAIL, DecisionCode.POLICY_LIMIT, reason, limits)
    delay = delay_s(rule.backoff or settings.default_backoff, used + 1, seed=history.job_id, draw=draw)
    return _granted(rule, failure, history, delay, limits)


def _used(history: RetryHistory, counter: str) -> int:
    for name, count in history.counters:
        if name == counter:
            return count
    return 0


def _ended(
    rule: CompiledRule, action: Action, code: DecisionCode, reason: str, limits: tuple[LimitUse, ...]
) -> Decision:
    """Decide against another attempt, or leave it to a person."""
    return Decision(
        action,
        code,
        reason,
        policy=rule.policy,
        rule=rule.name,
        rule_index=rule.index,
        policy_revision=rule.revision,
        limits=limits,
    )


def _granted(
    rule: CompiledRule, failure: Failure, history: RetryHistory, delay: float, limits: tuple[LimitUse, ...]
) -> Decision:
    """Decide for another attempt, and what it does differently."""
    counted = rule.action is Action.RETRY
    grown = history.memory if rule.growth is None else grow(history.memory, rule.growth)
    return Decision(
        rule.action,
        DecisionCode.RETRY if counted else DecisionCode.IGNORE,
        rule.reason,
        policy=rule.policy,
        rule=rule.name,
        rule_index=rule.index,
        policy_revision=rule.revision,
        counter=rule.counter if counted else None,
        delay_s=delay,
        avoid_node=failure.node if rule.avoid_node else None,
        memory=grown if grown != history.memory else None,
        limits=limits,
    )


def _delay_because(decision: Decision, rule: CompiledRule, history: RetryHistory, settings: RetrySettings) -> str:
    if not decision.grants_retry:
        return ""
    n = history.attempt if decision.counter is None else _used(history, decision.counter) + 1
    return delay_in_words(rule.backoff or settings.default_backoff, n)
