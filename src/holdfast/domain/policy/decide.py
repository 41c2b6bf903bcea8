"""Decides what happens after a failure; a pure function of policies, failure, history and settings.

The order of checks determines the reason reported: no failure; a cause that is never retried; the kill switch; the
global cap; the first rule that matches; its ``Fail`` or ``Hold``; its limit; a retry. ``Ignore`` is a retry that is
not counted: the kill switch stops it, but no limit does, and its delay grows with the attempts. A delay is
``initial * multiplier^exponent``, capped, jittered, and capped again.

Memory grows in whole bytes. A factor is read as the decimal number that was written, so 1.1 x 1000 is 1100, not 1101.
"""

from __future__ import annotations

import math
from fractions import Fraction
from hashlib import sha1
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.failure import NEVER_RETRIED
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision, JitterMode, LimitUse
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.compiled import CompiledRule, PolicySet
    from holdfast.domain.policy.model import Backoff, MemoryGrowth, RetryHistory, RetrySettings


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
        explain: Also record which rules were tried, why each did or did not match, and how the delay was computed; the
            decision is the same.

    Returns:
        The decision. Rules are tried only if no earlier check decides.
    """
    if failure is None:
        return Decision(Action.FAIL, DecisionCode.NO_ERROR, "no error information available")
    if failure.cause in NEVER_RETRIED:
        return Decision(Action.FAIL, DecisionCode.NEVER_RETRIED, f"cause {failure.cause} is never retried")
    cap = settings.global_max_retries
    if cap is not None and history.total >= cap and not (policies.may_ignore and cap):
        # An ``Ignore`` passes the cap, so policies that may have one are matched first.
        return _globally_stopped(history.total, cap)
    rule = policies.first_match(failure)
    decision = _apply_rule(rule, failure, history, settings, draw)
    if not explain:
        return decision
    return evolve(
        decision,
        considered=policies.considered(failure),
        delay_because=_delay_because(decision, rule, history, settings),
    )


def _globally_stopped(total: int, cap: int) -> Decision:
    reason = f"global max retries exceeded ({total}/{cap})" if cap else "global max retries is 0, retries disabled"
    return Decision(Action.FAIL, DecisionCode.GLOBAL_LIMIT, reason, limits=(LimitUse(GLOBAL_LIMIT, total, cap),))


def _apply_rule(
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
            return _no_retry(rule, Action.FAIL, code, rule.reason, (overall,))
        case Action.HOLD:
            return _no_retry(rule, Action.HOLD, DecisionCode.HOLD, rule.reason, (overall,))
        case Action.IGNORE:
            delay = delay_s(rule.backoff or settings.default_backoff, history.attempt, seed=history.seed, draw=draw)
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
    used = dict(history.counters).get(rule.counter, 0)
    limit = cap if rule.limit is None else rule.limit
    limits = (overall, LimitUse(rule.counter, used, limit))
    if limit is not None and used >= limit:
        reason = f"policy retry limit exceeded ({used}/{limit})"
        return _no_retry(rule, Action.FAIL, DecisionCode.POLICY_LIMIT, reason, limits)
    delay = delay_s(rule.backoff or settings.default_backoff, used + 1, seed=history.seed, draw=draw)
    return _granted(rule, failure, history, delay, limits)


def _no_retry(
    rule: CompiledRule, action: Action, code: DecisionCode, reason: str, limits: tuple[LimitUse, ...]
) -> Decision:
    """Decide against another attempt, or hold the job."""
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
    """Decide for another attempt, and what it changes."""
    counted = rule.action is Action.RETRY
    grown = history.memory if rule.growth is None else grow_memory(history.memory, rule.growth)
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
        avoid_devices=tuple([f"{device}@{failure.node}" for device in failure.devices]) if rule.avoid_devices else (),
        avoid_nodes=add_tried(history.tried, failure.node) if rule.avoid_tried else (),
        memory=grown if grown != history.memory else None,
        limits=limits,
    )


def add_tried(before: tuple[str, ...], *nodes: str | None) -> tuple[str, ...]:
    """Add nodes to those that were tried before, each once."""
    more = tuple(dict.fromkeys([node for node in nodes if node and node not in before]))
    return (*before, *more) if more else before


def _delay_because(decision: Decision, rule: CompiledRule, history: RetryHistory, settings: RetrySettings) -> str:
    if not decision.grants_retry:
        return ""
    n = history.attempt if decision.counter is None else dict(history.counters).get(decision.counter, 0) + 1
    return delay_in_words(rule.backoff or settings.default_backoff, n)


LONGEST_DELAY_S = 100 * 365 * 86400.0
"""A hundred years: the cap of an uncapped back-off, so that the due time is always a valid date."""


def delay_s(backoff: Backoff, n: int, *, seed: str, draw: float = 0.0) -> float:
    """Compute the delay before the ``n``-th retry of a rule.

    Args:
        backoff: The curve.
        n: Which retry of the rule this is, from 1.
        seed: Seeds deterministic jitter, together with ``n``: the job's id, or its session's.
        draw: In [0, 1), for random jitter.

    Returns:
        Seconds, from 0 to the back-off's maximum.
    """
    cap = LONGEST_DELAY_S if backoff.max_s is None else min(backoff.max_s, LONGEST_DELAY_S)
    base = _base_s(backoff, n - 1, cap)
    if backoff.jitter is JitterMode.NONE or not base:
        return base
    if backoff.of_session:
        return min(cap, _jittered(backoff, base, token=f"{seed}{n - 1}", draw=draw))
    # Leave room for the jitter below the maximum: delays that all reach it would be in step again.
    base = min(base, cap / (1 + backoff.jitter_ratio))
    return min(cap, _jittered(backoff, base, token=f"{seed}{n}", draw=draw))


def retry_at(failed_at: float, backoff_s: float, *, confirmed_stopped_at: float | None, grace_s: float) -> float:
    """Return when a retry is due: an early confirmation of the stop shortens the grace, never the back-off.

    Args:
        failed_at: When the attempt failed.
        backoff_s: The delay the policy asks for.
        confirmed_stopped_at: When all of its runs were known to have stopped; ``None`` if they are not.
        grace_s: How long a run may take to stop.

    Returns:
        The instant from which the next attempt may start.
    """
    graced = failed_at + grace_s
    stopped = graced if confirmed_stopped_at is None else min(confirmed_stopped_at, graced)
    return max(failed_at + backoff_s, stopped)


def delay_in_words(backoff: Backoff, n: int) -> str:
    """Describe how ``delay_s`` computes its result: ``1s x 2^2, plus deterministic jitter of up to 10%``."""
    if backoff.initial_s <= 0 or n <= 1 or backoff.multiplier == 1:
        field = "retry_delay" if backoff.of_session else "initialDelay"
        text = f"{field} {format_duration(backoff.initial_s)}"
    else:
        text = f"{format_duration(backoff.initial_s)} x {backoff.multiplier:g}^{n - 1}"
    longest_s, jitter, cap = _base_s(backoff, n - 1, math.inf), "", ""
    if backoff.initial_s > 0 and backoff.jitter is not JitterMode.NONE:
        jitter = f", plus {backoff.jitter} jitter of up to {backoff.jitter_ratio:.0%}"
        longest_s *= 1 + backoff.jitter_ratio if backoff.of_session else 1
    if backoff.max_s is not None and longest_s > backoff.max_s:
        cap = f", at most {format_duration(backoff.max_s)}"
    return f"{text}{jitter}{cap}" if backoff.of_session else f"{text}{cap}{jitter}"


def _base_s(backoff: Backoff, exponent: int, cap: float) -> float:
    """Grow the initial delay up to the cap, safely for any exponent."""
    if backoff.initial_s <= 0:
        return 0.0
    if exponent <= 0:
        return min(backoff.initial_s, cap)
    try:
        base = backoff.initial_s * math.pow(backoff.multiplier, exponent)
    except OverflowError:
        return cap
    return min(base, cap)


def _jittered(backoff: Backoff, base: float, *, token: str, draw: float) -> float:
    if backoff.jitter is JitterMode.DETERMINISTIC:
        span_ms = round(base * backoff.jitter_ratio * 1000)
        return base + (_sha1_number(token) % span_ms / 1000 if span_ms else 0.0)
    if backoff.jitter is JitterMode.RANDOM:
        return base * (1 + backoff.jitter_ratio * draw)
    return base


def _sha1_number(token: str) -> int:
    """Return all 160 bits of a text's SHA-1 as a big-endian number, the same in every process."""
    return int.from_bytes(sha1(token.encode(), usedforsecurity=False).digest(), "big")


SPENT = frozenset({DecisionCode.POLICY_LIMIT, DecisionCode.GLOBAL_LIMIT})
"""Codes of decisions by a limit that is used up."""
_RULE_REASONS = ("no rule matched, using default action", *(f"matched rule: {action}" for action in Action))
"""Beginnings of reasons that repeat which rule matched."""


def summarize_decision(decision: Decision) -> str:
    """Describe a decision in a few words: ``retried by rule flaky``, ``2 of 2 retries are used (train/oom)``."""
    if decision.code in SPENT:
        return describe_spent_limit(decision.limits[-1])
    reason = reason_beyond_rule(decision.reason)
    if not decision.grants_retry or not decision.policy:
        return reason or (
            f"not retried by rule {decision.rule}" if decision.rule_index is not None else "no rule matched"
        )
    how = "retried by default" if decision.rule_index is None else f"retried by rule {decision.rule}"
    return f"{how}; {reason}" if reason else how


def reason_beyond_rule(reason: str) -> str:
    """Return the part of a reason that says more than which rule matched."""
    for words in _RULE_REASONS:
        reason = reason.removeprefix(words)
    return reason.removeprefix("; ")


def describe_spent_limit(use: LimitUse, moved: str = "") -> str:
    """Say that a limit is used up."""
    used = f"{use.used} of {use.limit} retries are used" if use.limit else "the retry limit is 0"
    return f"{used} ({use.name}{moved})"


def grow_memory(memory: int, growth: MemoryGrowth) -> int:
    """Grow a memory request once; applied to its own result, it compounds.

    Args:
        memory: The request so far in bytes; 0 is no request, and stays 0.
        growth: The factor or amount, and the maximum.

    Returns:
        The new request, rounded up to whole bytes and never smaller than before.
    """
    if memory <= 0:
        return memory
    grown = memory + (growth.static or 0)
    if growth.factor is not None:
        numerator, denominator = Fraction(repr(growth.factor)).as_integer_ratio()
        grown = -(-grown * numerator // denominator)
    if growth.max is not None:
        grown = min(grown, growth.max)
    return max(memory, grown)
