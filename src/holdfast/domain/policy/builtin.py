"""The built-in policies: for infrastructure failures, and for runs that saved their work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    RetryPolicy,
    Rule,
)
from holdfast.domain.record import evolve
from holdfast.domain.terms.settings import UnknownEnd

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            backoff=evolve(_SOON, initial_s=0.1),
        ),
    ),
    retry_limit=100,
    default_action=Action.FAIL,
    backoff=_SOON,
    anti_affinity=AntiAffinity.NODE,
)
"""Retries failures that the infrastructure caused, on budgets of its own.

A user's rules come first, so they can decide otherwise. These retries use none of the limits of the user's policies,
but count towards ``globalMaxRetries``, which caps the total and stops them, too, when it is 0. A preempted run is
pending again at once: its place went to more important work, and the node itself is sound. The jitter of the other
delays is as long as the delay: runs that were lost together must not come back together, or they meet whatever took
the node down again and again.
"""

_LOST = frozenset({"node-lost", "executor-lost", "launch-failed"})
LOST_ONLY = evolve(
    INFRASTRUCTURE, rules=tuple(rule for rule in INFRASTRUCTURE.rules if rule.name in _LOST), retry_limit=3
)
"""The rules for runs that were lost or never started, which other systems retry a few times by themselves."""

NEVER_STARTED = evolve(LOST_ONLY, rules=tuple(rule for rule in LOST_ONLY.rules if rule.name == "launch-failed"))
"""The rule for runs that never started, which Armada's policies do not judge: it returns their lease."""

NO_RETRY = RetryPolicy(name="fail-fast", default_action=Action.FAIL)
"""Retries nothing; the only policy of a job that asks for it (Armada's annotation ``armadaproject.io/failFast``)."""

ON_UNKNOWN_END = "on-unknown-end"
"""The name of the policy for runs whose end is unknown."""


def unknown_end(
    policies: Sequence[RetryPolicy], *, before: Sequence[tuple[str, UnknownEnd | None]] = ()
) -> RetryPolicy | None:
    """Return a policy whose one rule holds or fails runs whose end is unknown; the rule is named after who sets it.

    Args:
        policies: Those that apply, in order; the first with a setting counts.
        before: Settings that come before those of the policies, by owner.

    Returns:
        ``None`` if nothing is set, or ``Retry``: such a run is then retried like any lost one.
    """
    declared = (*before, *((f"policy {policy.name}", policy.on_unknown_end) for policy in policies))
    owner, what = next(((owner, what) for owner, what in declared if what is not None), ("", UnknownEnd.RETRY))
    if what is UnknownEnd.RETRY:
        return None
    reason = f"how it ended is unknown, and onUnknownEnd of the {owner} is {what}"
    conditions = frozenset({FailureCondition.END_UNKNOWN})
    return RetryPolicy(ON_UNKNOWN_END, (Rule(Action(what), owner, conditions=conditions, hold_reason=reason),))


CHECKPOINTED = "checkpointed"
"""The name of the policy for runs that saved their work."""
WORTH_S = 60.0
"""A run that saved after at least this long has made progress."""
MOST_EARLY = 10
"""Retries of runs that saved sooner."""
_WARNED = frozenset({FailureCondition.DEADLINE_EXCEEDED, FailureCondition.PREEMPTED, FailureCondition.EVICTED})


def checkpoint_policy(code: int, worth_s: float = WORTH_S) -> RetryPolicy:
    """Return the policy for a job whose runs report by an exit code that they have saved and want to run again.

    Such a retry counts against no limit, unless the run was so short that it cannot have done anything: a program that
    always saves at once would be restarted for ever.

    Args:
        code: The exit code.
        worth_s: A run that lasted at least this long has made progress.
    """
    codes = ExitCodes(ExitCodeOperator.IN, frozenset({code}))
    return RetryPolicy(
        name=CHECKPOINTED,
        rules=(
            Rule(Action.IGNORE, "told", exit_codes=codes, conditions=_WARNED, backoff=_AT_ONCE),
            Rule(Action.IGNORE, "saved", exit_codes=codes, ran_longer_than_s=worth_s, backoff=_AT_ONCE),
            Rule(Action.RETRY, "early", exit_codes=codes, retry_limit=MOST_EARLY, backoff=_SOON),
        ),
        default_action=Action.FAIL,
    )
