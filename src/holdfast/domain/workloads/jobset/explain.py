"""Explains a decision about a failed job of a set in sentences: what failed, which rule decided, what follows.

Rules that did not match are in ``SetDecision.considered``, not in the sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.explain import failure_lines
from holdfast.domain.policy.model import SetAction
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.failure import Failure
    from holdfast.domain.workloads.jobset.state import SetDecision


_FOLLOWS = {
    SetAction.FAIL_JOB_SET: "the set fails at once, whatever maxRestarts says",
    SetAction.FAIL_JOB: "the job stays failed, and the others continue",
    SetAction.RESTART_JOB_SET: "all jobs of the set are restarted, finished ones too",
    SetAction.RESTART_JOB_SET_UNCOUNTED: "all jobs of the set are restarted, finished ones too; this is not counted",
    SetAction.RESTART_GROUP: "all jobs of its replicatedJob are restarted",
    SetAction.RESTART_GROUP_UNCOUNTED: "all jobs of its replicatedJob are restarted; this is not counted",
    SetAction.RESTART_JOB: "only this job is restarted",
    SetAction.RESTART_JOB_UNCOUNTED: "only this job is restarted; this is not counted",
}


def explain(decision: SetDecision, failure: Failure | None = None) -> list[str]:
    """Explain a decision to a person.

    Args:
        decision: What was decided.
        failure: How the program of the job ended, where that is known.

    Returns:
        Sentences, in order.
    """
    return [_failed(decision, failure), *_rule(decision), *_follows(decision)]


def in_short(decision: SetDecision) -> str:
    """Say in a few words what decided."""
    if decision.action is None:
        return "its job set has no failure policy"
    if not decision.granted:
        return f"{decision.action} is refused: {_spent(decision)}"
    return f"rule {decision.rule}" if decision.rule is not None else "no rule matched, the default action applied"


def attempt_of(decision: SetDecision) -> int:
    """Return which attempt at its job a decision is about, from 1."""
    return 1 + sum(decision.attempt)


def _failed(decision: SetDecision, failure: Failure | None) -> str:
    number = attempt_of(decision)
    return f"Attempt {number} failed." if failure is None else next(failure_lines(failure, number))


def _rule(decision: SetDecision) -> Iterator[str]:
    if decision.action is None:
        yield "The set has no failure policy, so its first failed job fails it."
    elif decision.rule is None:
        yield "No rule matched, so the default action applied."
    else:
        because = next((f": {rule.because}" for rule in decision.considered if rule.matched), "")
        yield f"Rule {decision.rule} matched{because}."


def _follows(decision: SetDecision) -> Iterator[str]:
    if not decision.granted:
        yield f"{decision.action} is refused and the set fails: {_spent(decision)}."
    elif decision.action is not None:
        yield f"{decision.action}: {_FOLLOWS[decision.action]}."
        if decision.limits:
            counts = (f"restart {use.used + 1} of {use.limit} ({use.name})" for use in decision.limits)
            yield f"This is {', '.join(counts)}."
        if decision.delay_s:
            yield f"It starts {format_duration(decision.delay_s)} later."


def _spent(decision: SetDecision) -> str:
    if not decision.limits:
        return decision.message
    last = decision.limits[-1]
    return f"{last.used} of {last.limit} restarts are used ({last.name})"
