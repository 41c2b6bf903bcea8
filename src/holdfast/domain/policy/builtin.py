"""The built-in policy for failures of infrastructure."""

from __future__ import annotations

from dataclasses import replace

from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import Action, AntiAffinity, Backoff, JitterMode, RetryPolicy, Rule

_SOON = Backoff(initial_s=1.0, max_s=60.0, multiplier=2.0, jitter=JitterMode.DETERMINISTIC, jitter_ratio=1.0)
_AT_ONCE = Backoff(initial_s=0.0)

INFRASTRUCTURE = RetryPolicy(
    name="infrastructure",
    rules=(
        Rule(
            Action.RETRY,
            "preempted",
            conditions=frozenset({FailureCondition.PREEMPTED}),
            backoff=_AT_ONCE,
            anti_affinity=AntiAffinity.NONE,
        ),
        Rule(Action.RETRY, "evicted", conditions=frozenset({FailureCondition.EVICTED})),
        Rule(Action.RETRY, "node-lost", conditions=frozenset({FailureCondition.NODE_LOST})),
        Rule(Action.RETRY, "executor-lost", conditions=frozenset({FailureCondition.EXECUTOR_LOST})),
        Rule(
            Action.RETRY,
            "launch-failed",
            conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
            retry_limit=2,
            backoff=replace(_SOON, initial_s=0.1),
        ),
    ),
    retry_limit=100,
    default_action=Action.FAIL,
    backoff=_SOON,
    anti_affinity=AntiAffinity.NODE,
)
"""Retries failures caused by the place, on budgets of its own (semantics, section 1).

A user's rules come first, so they can decide otherwise. Its retries use none of the limits of the user's policies;
they do count towards ``globalMaxRetries``, because that caps the total, and its kill switch stops them too. A
preempted run is pending again at once: its place went to more important work, and the node itself is sound. The
others are spread over as long again as they wait: what was lost together must not come back together, or it meets
whatever took the place down again and again.
"""
