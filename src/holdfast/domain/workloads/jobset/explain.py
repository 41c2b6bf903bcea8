"""Tells a decision about a failed job of a set as a story: what failed, which rules were looked at, what follows.

Decides the words; leaves showing them to those who show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.model import SetAction
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.workloads.jobset.state import SetDecision

_FOLLOWS = {
    SetAction.FAIL_JOB_SET: "The set fails at once, whatever maxRestarts says.",
    SetAction.FAIL_JOB: "The job is left failed; the others go on.",
    SetAction.RESTART_JOB_SET: "Every job of the set runs again, finished ones too.",
    SetAction.RESTART_JOB_SET_UNCOUNTED: "Every job of the set runs again, finished ones too; this is not counted.",
    SetAction.RESTART_GROUP: "Every job of its replicatedJob runs again.",
    SetAction.RESTART_GROUP_UNCOUNTED: "Every job of its replicatedJob runs again; this is not counted.",
    SetAction.RESTART_JOB: "That job runs again, and no other.",
    SetAction.RESTART_JOB_UNCOUNTED: "That job runs again, and no other; this is not counted.",
}


def explain(decision: SetDecision) -> list[str]:
    """Explain a decision to a person.

    Args:
        decision: Made with ``explain=True``, so that it says which rules were looked at.

    Returns:
        Sentences, in order.
    """
    return [*_looked_at(decision), *_decided(decision), *_limits(decision), *_follows(decision)]


def _looked_at(decision: SetDecision) -> Iterator[str]:
    set_restart, own_restart = decision.attempt
    tries = set_restart + own_restart
    yield f"Job {decision.job} failed in its attempt {tries + 1}."
    for rule in decision.considered:
        verb = "matched" if rule.matched else "did not match"
        yield f"Rule {rule.rule} {verb}: {rule.because}."


def _decided(decision: SetDecision) -> Iterator[str]:
    if decision.action is None:
        yield "The set has no failure policy, so its first failed job fails it."
    elif decision.rule is None:
        yield f"No rule matched, so the default action applies: {decision.action}."
    else:
        yield f"Rule {decision.rule} decides: {decision.action}."


def _limits(decision: SetDecision) -> Iterator[str]:
    for use in decision.limits:
        times = "1 restart was" if use.used == 1 else f"{use.used} restarts were"
        yield f"{use.name}: {times} counted before this failure; the limit is {use.limit}."


def _follows(decision: SetDecision) -> Iterator[str]:
    if not decision.granted:
        yield f"That is not granted and the set fails: {decision.message}."
    elif decision.action is not None:
        yield _FOLLOWS[decision.action]
        if decision.delay_s:
            yield f"It waits {format_duration(decision.delay_s)} before it starts."
