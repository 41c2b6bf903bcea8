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
"""Retries failures caused by the place, on budgets of its own.

A user's rules come first, so they can decide otherwise. Its retries use none of the limits of the user's policies;
they do count towards ``globalMaxRetries``, because that caps the total, and its kill switch stops them too. A
preempted run is pending again at once: its place went to more important work, and the node itself is sound. The
others are spread over as long again as they wait: what was lost together must not come back together, or it meets
whatever took the place down again and again.
"""

_LOST = frozenset({"node-lost", "executor-lost", "launch-failed"})
LOST_ONLY = evolve(
    INFRASTRUCTURE, rules=tuple(rule for rule in INFRASTRUCTURE.rules if rule.name in _LOST), retry_limit=3
)
"""The part for what was lost with its place, or never started, which other systems retry a few times by themselves."""

NEVER_STARTED = evolve(LOST_ONLY, rules=tuple(rule for rule in LOST_ONLY.rules if rule.name == "launch-failed"))
"""The part for what never started, which no policy of Armada is asked about: its lease was returned."""

NO_RETRY = RetryPolicy(name="fail-fast", default_action=Action.FAIL)
"""Retries nothing; all there is for a job that says so (Armada's annotation ``armadaproject.io/failFast``)."""

ON_UNKNOWN_END = "on-unknown-end"
"""The name of the policy for runs of which nobody knows how they ended."""


def unknown_end(
    policies: Sequence[RetryPolicy], *, before: Sequence[tuple[str, UnknownEnd | None]] = ()
) -> RetryPolicy | None:
    """Return the policy of one rule that holds or fails what may have run; its name says whose word it is.

    Args:
        policies: Those that apply, in order; the first that says anything counts.
        before: Who is asked before them, and what they say.

    Returns:
        ``None`` where nobody says anything, or ``Retry``: then it is retried as what is lost.
    """
    declared = (*before, *((f"policy {policy.name}", policy.on_unknown_end) for policy in policies))
    owner, what = next(((owner, what) for owner, what in declared if what is not None), ("", UnknownEnd.RETRY))
    if what is UnknownEnd.RETRY:
        return None
    reason = f"nobody knows how it ended, and onUnknownEnd of the {owner} is {what}"
    conditions = frozenset({FailureCondition.END_UNKNOWN})
    return RetryPolicy(ON_UNKNOWN_END, (Rule(Action(what), owner, conditions=conditions, hold_reason=reason),))


CHECKPOINTED = "checkpointed"
"""The name of the policy for runs that saved what they have."""
WORTH_S = 60.0
"""A run that took so long before it saved came further."""
MOST_EARLY = 10
_TOLD = frozenset({FailureCondition.DEADLINE_EXCEEDED, FailureCondition.PREEMPTED, FailureCondition.EVICTED})


def checkpointed(code: int, worth_s: float = WORTH_S) -> RetryPolicy:
    """Return the policy for a job whose runs say with an exit code that they have saved and want to be run again.

    That costs no retry of any limit, unless it comes so early that nothing can have been done: a program that always
    saves at once would be started for ever.

    Args:
        code: The exit code.
        worth_s: How long a run takes at least that came further; of a run that is warned sooner, until then.
    """
    codes = ExitCodes(ExitCodeOperator.IN, frozenset({code}))
    return RetryPolicy(
        name=CHECKPOINTED,
        rules=(
            Rule(Action.IGNORE, "told", exit_codes=codes, conditions=_TOLD, backoff=_AT_ONCE),
            Rule(Action.IGNORE, "saved", exit_codes=codes, ran_longer_than_s=worth_s, backoff=_AT_ONCE),
            Rule(Action.RETRY, "early", exit_codes=codes, retry_limit=MOST_EARLY, backoff=_SOON),
        ),
        default_action=Action.FAIL,
    )
