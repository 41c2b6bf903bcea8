"""Tells a decision as a story: what happened, which rules were looked at, which limits, what follows.

Decides the words; leaves tables and colours to those who show them, and rebuilding ``considered`` to ``decide``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from holdfast.domain.failure import in_words
from holdfast.domain.policy.decide import GLOBAL_LIMIT
from holdfast.domain.policy.model import Action, DecisionCode
from holdfast.domain.units import format_duration, format_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.model import Decision, LimitUse, RetryHistory, RetrySettings

_UNJUDGED = {
    DecisionCode.NO_ERROR: "Nothing is known of what went wrong, so no rule could be looked at and it is not retried.",
    DecisionCode.NEVER_RETRIED: "No policy can retry this cause, so no rule was looked at.",
}


def explain(decision: Decision, failure: Failure | None, history: RetryHistory, settings: RetrySettings) -> list[str]:
    """Explain a decision to a person.

    Args:
        decision: Made with ``explain=True``, so that it says which rules were looked at.
        failure: What was judged.
        history: What the decision knew of the job's past.
        settings: What the operator has set now; a cap that has moved since is pointed out.

    Returns:
        Sentences, in order.
    """
    return [
        *_happened(failure, history),
        *_looked_at(decision),
        *_decided(decision),
        *_limits(decision, settings),
        *_follows(decision, history),
    ]


def _happened(failure: Failure | None, history: RetryHistory) -> Iterator[str]:
    if failure is None:
        yield f"Attempt {history.attempt} ended without saying how."
        return
    where = f" on node {failure.node}" if failure.node else ""
    after = f" after {format_duration(failure.ran_s)}" if failure.ran_s is not None else ""
    yield f"Attempt {history.attempt} failed{where}{after}: {in_words(failure)}."
    if not failure.started:
        yield "Its program never started."
    conditions = f", conditions {', '.join(sorted(failure.conditions))}" if failure.conditions else ""
    category = "/".join(part for part in (failure.category, failure.subcategory) if part)
    yield f"It is charged to {failure.cause}{conditions}{f', category {category}' if category else ''}."
    if failure.hint:
        yield f"Hint: {failure.hint}"


def _looked_at(decision: Decision) -> Iterator[str]:
    for rule in decision.considered:
        verb = "matched" if rule.matched else "did not match"
        yield f"Rule {rule.rule} of policy {rule.policy} {verb}: {rule.because}."


def _decided(decision: Decision) -> Iterator[str]:
    if decision.code in _UNJUDGED:
        yield _UNJUDGED[decision.code]
    elif decision.code is DecisionCode.GLOBAL_LIMIT:
        yield f"It is not retried, whatever the rules say: {decision.reason}."
    else:
        yield _done(decision)


def _done(decision: Decision) -> str:
    match decision.action:
        case Action.HOLD:
            return f"It waits for a person to release it: {decision.reason}."
        case Action.FAIL:
            return f"It is not retried{_by(decision)}: {decision.reason}."
        case Action.IGNORE:
            return f"It runs again without being counted{_by(decision)}: {decision.reason}."
        case Action.RETRY:
            return f"It is retried{_by(decision)}: {decision.reason}."
        case _:
            assert_never(decision.action)


def _by(decision: Decision) -> str:
    if decision.policy is None:
        return ""
    who = "the default action" if decision.rule_index is None else f"rule {decision.rule}"
    return f" by {who} of policy {decision.policy} (revision {decision.policy_revision})"


def _limits(decision: Decision, settings: RetrySettings) -> Iterator[str]:
    for use in decision.limits:
        allowed = "there is no limit" if use.limit is None else f"the limit is {use.limit}"
        yield f"{use.name}: {_retries(use.used)} granted before this failure; {allowed}{_moved(use, settings)}."


def _retries(count: int) -> str:
    return f"{count} retry was" if count == 1 else f"{count} retries were"


def _moved(use: LimitUse, settings: RetrySettings) -> str:
    now = settings.global_max_retries
    if use.name != GLOBAL_LIMIT or use.limit == now:
        return ""
    return f" (it is {'unlimited' if now is None else now} now)"


def _follows(decision: Decision, history: RetryHistory) -> Iterator[str]:
    if not decision.runs_again:
        return
    because = f" ({decision.delay_because})" if decision.delay_because else ""
    wait = f"waits {format_duration(decision.delay_s)}" if decision.delay_s else "does not wait"
    yield f"Attempt {history.attempt + 1} {wait}{because}."
    if decision.avoid_node:
        yield f"It avoids node {decision.avoid_node}, unless no other node could ever take it."
    if decision.memory is not None:
        yield f"It asks for {format_memory(decision.memory)} of memory instead of {format_memory(history.memory)}."
