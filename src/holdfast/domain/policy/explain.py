"""Explains a decision in sentences: what happened, which rule decided, which limits counted, what follows.

Rules that did not match are in ``Decision.considered``, not in the sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import EndedBy, failure_in_full
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import GLOBAL_LIMIT, SPENT, describe_spent_limit, reason_beyond_rule
from holdfast.domain.policy.model import Action
from holdfast.domain.units import format_duration, format_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.model import Decision, LimitUse, RetryHistory, RetrySettings

_NOT_ASKED = {
    DecisionCode.NO_ERROR: "Nothing is known about what went wrong, so it is not retried.",
    DecisionCode.NEVER_RETRIED: "No policy can retry this cause.",
}


def explain(decision: Decision, failure: Failure | None, history: RetryHistory, settings: RetrySettings) -> list[str]:
    """Explain a decision to a person.

    Args:
        decision: Made with ``explain=True``, so that it says why its rule matched.
        failure: What was judged.
        history: The history that was judged.
        settings: The operator's settings now; a cap that has changed since is pointed out.

    Returns:
        Sentences, in order.
    """
    return [
        *failure_lines(failure, history.attempt),
        *_rule(decision),
        *_decided(decision, settings),
        *_follows(decision, history),
    ]


def failure_lines(failure: Failure | None, attempt: int) -> Iterator[str]:
    """Say how an attempt failed and how the failure was classified."""
    if failure is None:
        yield f"How attempt {attempt} ended is unknown."
        return
    where = f" on node {failure.node}" if failure.node else ""
    after = f" after {format_duration(failure.ran_s)}" if failure.ran_s is not None else ""
    never = "" if failure.started else " before its program started"
    message = failure_in_full(failure)
    how = "was stopped" if failure.ended_by is EndedBy.DRAIN else "failed"
    yield f"Attempt {attempt} {how}{where}{after or never}: {message}."
    if failure.error_line not in message:
        yield f"Its output says: {failure.error_line}"
    named = sorted(failure.conditions)
    conditions = f", condition{'s' if len(named) > 1 else ''} {', '.join(named)}" if named else ""
    category = "/".join(part for part in (failure.category, failure.subcategory) if part)
    yield f"Classified as {failure.cause}{conditions}{f', category {category}' if category else ''}."
    if failure.hint:
        yield f"Hint: {failure.hint}{f' Suggested action: {failure.suggestion}.' if failure.suggestion else ''}"


def _rule(decision: Decision) -> Iterator[str]:
    if decision.policy is None:
        return
    message = f"of policy {decision.policy} (revision {decision.policy_revision})"
    if decision.rule_index is None:
        yield f"No rule matched, so the default action {message} applied: {decision.action}."
        return
    because = next((f": {rule.because}" for rule in decision.considered if rule.matched), "")
    yield f"Rule {decision.rule} {message} matched{because}."


def _decided(decision: Decision, settings: RetrySettings) -> Iterator[str]:
    reason = reason_beyond_rule(decision.reason)
    message = f": {reason}" if reason else ""
    if decision.code in _NOT_ASKED:
        yield _NOT_ASKED[decision.code]
    elif decision.code in SPENT:
        yield f"It is not retried: {describe_spent_limit(decision.limits[-1], _moved(decision.limits[-1], settings))}."
    elif decision.action is Action.HOLD:
        yield f"The job is held until someone releases it{message}."
    elif decision.action is Action.FAIL:
        yield f"It is not retried{message}."
    else:
        yield f"It is retried{_counted(decision, settings)}{message.replace(':', ';', 1)}."


def _counted(decision: Decision, settings: RetrySettings) -> str:
    if decision.action is Action.IGNORE:
        return ", and the retry is not counted"
    counts = [_retry(use, settings) for use in reversed(decision.limits) if use.limit is not None]
    return f": {', '.join(counts)}" if counts else ", without a limit"


def _retry(use: LimitUse, settings: RetrySettings) -> str:
    return f"retry {use.used + 1} of {use.limit} ({use.name}{_moved(use, settings)})"


def _moved(use: LimitUse, settings: RetrySettings) -> str:
    now = settings.global_max_retries
    if use.name != GLOBAL_LIMIT or use.limit == now:
        return ""
    return f", {'unlimited' if now is None else now} now"


def _follows(decision: Decision, history: RetryHistory) -> Iterator[str]:
    if not decision.grants_retry:
        return
    because = f" ({decision.delay_because})" if decision.delay_because else ""
    wait = f"{format_duration(decision.delay_s)} later" if decision.delay_s else "at once"
    yield f"Attempt {history.attempt + 1} starts {wait}{because}."
    if decision.avoid_node:
        yield f"It avoids node {decision.avoid_node} unless no other node could ever run it."
    if decision.avoid_nodes:
        tried = ", ".join(decision.avoid_nodes)
        yield f"It is kept off {tried}, where it was tried, and fails if no other node could ever run it."
    if decision.avoid_devices:
        other = "other" if len(decision.avoid_devices) == 1 else "others"
        yield f"It avoids {', '.join(decision.avoid_devices)} unless no {other} could ever run it."
    if decision.memory is not None:
        yield f"It asks for {format_memory(decision.memory)} of memory instead of {format_memory(history.memory)}."
