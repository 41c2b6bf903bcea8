"""How decisions look: in one line while following a job, and in the tables of ``why``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import ending, when
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.decisions import DecisionView, FailedPod
    from holdfast.wire.jobs import AttemptView
    from holdfast.wire.jobsets import SetDecisionView


def considered_table(decision: DecisionView | SetDecisionView) -> Table:
    """Tabulate the rules that were considered, in order."""
    rows = [(rule.policy, rule.rule, "yes" if rule.matched else "no", rule.because) for rule in decision.considered]
    return ("POLICY", "RULE", "MATCHED", "BECAUSE"), rows


def limit_table(decision: DecisionView) -> Table:
    """Tabulate the limits that were checked."""
    rows = [(use.name, str(use.used), "unlimited" if use.limit is None else str(use.limit)) for use in decision.limits]
    return ("LIMIT", "USED", "ALLOWED"), rows


def failed_pod_table(pods: Sequence[FailedPod]) -> Table:
    """Tabulate how pods failed and what was decided about each."""
    rows = [
        (pod.run, when(pod.ended_at) if pod.ended_at else "", pod.failure, pod.decision.action, pod.decision.reason)
        for pod in pods
    ]
    return ("POD", "ENDED", "FAILURE", "DECISION", "REASON"), rows


def attempt_line(attempt: AttemptView) -> str:
    """Say in one line how an attempt failed and what follows."""
    line = f"attempt {attempt.number} {attempt.state.lower()}: {_how(attempt)}"
    return f"{line}; {_follows(attempt.decision)}" if attempt.decision else line


def outcome(decision: DecisionView) -> str:
    """Say in a few words what was decided and by what."""
    if decision.code in _SPENT and decision.limits:
        last = decision.limits[-1]
        return f"{last.used} of {last.limit} retries are used" if last.limit else "the retry limit is 0"
    before, matched, more = decision.reason.partition("matched rule: ")
    if before or not matched:
        return decision.reason
    return f"rule {decision.rule}{more.removeprefix(decision.action)}"


def _how(attempt: AttemptView) -> str:
    """Say how it ended; the platform's own words are added when the program has not ended by itself."""
    how = ending(attempt.exit_code, attempt.signal, attempt.conditions)
    if attempt.exit_code is not None and how:
        return how
    return ": ".join(filter(None, (how, attempt.message))) or attempt.cause or "no reason was given"


def _follows(decision: DecisionView) -> str:
    if decision.action == "Hold":
        return f"held: {decision.reason}"
    if decision.action in _OF_SETS:
        return f"{_OF_SETS[decision.action]}: {decision.reason}"
    if decision.action not in {"Retry", "Ignore"}:
        return f"no retry: {outcome(decision)}"
    delay = f"in {format_duration(decision.delay_s)}" if decision.delay_s else "now"
    if decision.policy is None:
        return f"{_count(decision)} {delay}: {decision.reason}"
    growth = f" with {decision.memory} of memory" if decision.memory else ""
    return f"{_count(decision)} {delay}{growth} (rule {decision.rule or 'default'}, policy {decision.policy})"


_SPENT = frozenset({DecisionCode.POLICY_LIMIT, DecisionCode.GLOBAL_LIMIT})
_OF_SETS = {
    "FailJobSet": "its job set fails",
    "FailJob": "left failed",
    "RestartJobSet": "every job of its set is restarted",
    "RestartJobSetAndIgnoreMaxRestarts": "every job of its set is restarted, not counted",
    "RestartReplicatedJob": "every job of its replicatedJob is restarted",
    "RestartReplicatedJobAndIgnoreMaxRestarts": "every job of its replicatedJob is restarted, not counted",
    "RestartJob": "it is restarted",
    "RestartJobAndIgnoreMaxRestarts": "it is restarted, not counted",
}
"""What follows when the job set of a failed job decides, by the action of its failure policy's rule."""


def _count(decision: DecisionView) -> str:
    """Say which retry this is, by the limit nearest to its end; an ignored failure is not counted."""
    if decision.action == "Ignore":
        return "retry, not counted,"
    bounded = [use for use in decision.limits if use.limit is not None]
    if not bounded:
        return "retry"
    nearest = min(bounded, key=lambda use: (use.limit or 0) - use.used)
    return f"retry {nearest.used + 1}/{nearest.limit}"
