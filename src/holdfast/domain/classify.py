"""Turns the facts of how a run ended into conditions, one cause and a category.

A user's cancel wins over everything. Out of memory needs evidence: exit code 137 alone is a program's own code.
Categories have shipped Armada's semantics: any failed container counts, init containers included, and one that exited
with 0 never does; the first category with a matching rule wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition
from holdfast.domain.policy.matchers import ConditionMatcher, ContainerSelector, ExitCodeMatcher, MessageMatcher
from holdfast.domain.policy.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.category import CategoryRule, FailureCategory
    from holdfast.domain.failure import RunOutcome

    Test = Callable[[Failure, RunOutcome], bool]

_OF_POD = frozenset(condition.value for condition in FailureCondition) - {
    FailureCondition.OOM_KILLED,
    FailureCondition.APP_ERROR,
}
"""Conditions of the whole run, which naming a container does not narrow."""


@dataclass(frozen=True, slots=True)
class CategoryMatch:
    """The category a failure belongs to; empty names when there is none."""

    category: str = ""
    subcategory: str = ""
    hint: str = ""
    pod_action: str = "Retain"


@dataclass(frozen=True, slots=True)
class CompiledCategories:
    """Categories in order of precedence, ready to match."""

    rules: tuple[tuple[tuple[Test, ...], CategoryMatch], ...] = ()
    """What must hold, and what the failure then is."""
    otherwise: CategoryMatch = CategoryMatch()

    @classmethod
    def compile(
        cls, categories: Sequence[FailureCategory], *, default_category: str = "", default_subcategory: str = ""
    ) -> CompiledCategories:
        """Compile categories.

        Args:
            categories: In any order; ``precedence``, then the name, decides.
            default_category: For failures that match none.
            default_subcategory: Likewise.

        Raises:
            InvalidPolicy: A pattern is not RE2; readers check that before.
        """
        ordered = sorted(categories, key=lambda category: (category.precedence, category.name))
        rules = tuple((_tests(rule), _match(category, rule)) for category in ordered for rule in category.rules)
        return cls(rules, CategoryMatch(default_category, default_subcategory))

    def match(self, failure: Failure, outcome: RunOutcome) -> CategoryMatch:
        """Find the category of a failure and of the outcome it was made of."""
        for tests, found in self.rules:
            if all(test(failure, outcome) for test in tests):
                return found
        return self.otherwise


NO_CATEGORIES = CompiledCategories()
"""No categories."""


def _match(category: FailureCategory, rule: CategoryRule) -> CategoryMatch:
    return CategoryMatch(category.name, rule.subcategory, rule.hint or category.hint, category.pod_action)


def _tests(rule: CategoryRule) -> tuple[Test, ...]:
    selector = ContainerSelector(rule.container_name, init=True)
    tests: list[Test] = []
    if rule.conditions is not None:
        tests.append(_of_failure(ConditionMatcher(selector, rule.conditions, _OF_POD)))
    if rule.exit_codes is not None:
        tests.append(_of_failure(ExitCodeMatcher(selector, rule.exit_codes)))
    if rule.termination_message is not None:
        tests.append(_of_failure(MessageMatcher(selector, Pattern(rule.termination_message))))
    if rule.log is not None:
        tests.append(_in_log(Pattern(rule.log)))
    if rule.pod_error is not None:
        tests.append(_in_pod_error(Pattern(rule.pod_error)))
    if rule.pod_event is not None:
        tests.append(_in_events(Pattern(rule.pod_event), rule))
    return tuple(tests)


def _of_failure(matcher: ConditionMatcher | ExitCodeMatcher | MessageMatcher) -> Test:
    return lambda failure, _: matcher.holds(failure)


def _in_log(pattern: Pattern) -> Test:
    return lambda _, outcome: any(pattern.found_in(line) for line in outcome.log_tail)


def _in_pod_error(pattern: Pattern) -> Test:
    return lambda _, outcome: pattern.found_in(outcome.message)


def _in_events(pattern: Pattern, rule: CategoryRule) -> Test:
    return lambda _, outcome: any(
        (not rule.pod_event_type or event.type == rule.pod_event_type)
        and (not rule.pod_event_reason or event.reason == rule.pod_event_reason)
        and pattern.found_in(event.message)
        for event in outcome.events
    )


_MEANS: dict[EndedBy, FailureCondition] = {
    EndedBy.DEADLINE: FailureCondition.DEADLINE_EXCEEDED,
    EndedBy.MEMORY: FailureCondition.OOM_KILLED,
    EndedBy.PREEMPTION: FailureCondition.PREEMPTED,
}
_CAUSES: tuple[tuple[FailureCondition, Cause], ...] = (
    (FailureCondition.OOM_KILLED, Cause.OOM_KILLED),
    (FailureCondition.IMAGE_PULL_FAILED, Cause.IMAGE_PULL_FAILURE),
    (FailureCondition.DEADLINE_EXCEEDED, Cause.EXECUTION_TIMEOUT),
    (FailureCondition.UNSCHEDULABLE, Cause.SCHEDULER_TIMEOUT),
    (FailureCondition.NODE_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.EXECUTOR_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.PREEMPTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.EVICTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.LAUNCH_FAILED, Cause.AGENT_TRANSIENT),
    (FailureCondition.APP_ERROR, Cause.KERNEL_NONZERO_EXIT),
)
"""The first condition that holds gives the cause."""
LOST = frozenset({FailureCondition.NODE_LOST, FailureCondition.EXECUTOR_LOST})
"""Conditions under which its place is gone, with whatever ran there."""


def classify(outcome: RunOutcome, *, rank: int = 0, categories: CompiledCategories = NO_CATEGORIES) -> Failure:
    """Classify a run that did not succeed.

    Args:
        outcome: The facts.
        rank: Of the run in its attempt.
        categories: The operator's, compiled.

    Returns:
        The failure, with every condition that holds, reported or derived.
    """
    conditions, cause = _conditions(outcome), Cause.UNKNOWN
    if outcome.ended_by is EndedBy.USER:
        cause = Cause.USER_CANCELLED
    else:
        for condition, meant in _CAUSES:
            if condition in conditions:
                cause = meant
                break
    failure = Failure(
        cause=cause,
        conditions=conditions,
        containers=outcome.containers,
        rank=rank,
        node=outcome.node,
        executor=outcome.executor,
        started=outcome.started,
        ran_s=outcome.ran_s,
        failed_at=outcome.ended_at,
        message=outcome.message,
        ended_by=outcome.ended_by,
    )
    if categories == NO_CATEGORIES:
        return failure
    found = categories.match(failure, outcome)
    return replace(failure, category=found.category, subcategory=found.subcategory, hint=found.hint)


def initiating(outcomes: Sequence[tuple[int, RunOutcome]]) -> int | None:
    """Find the failure that explains the others: the earliest by time, then by rank.

    Args:
        outcomes: Rank and outcome of each run that has ended.

    Returns:
        Its index; ``None`` when every run succeeded or was stopped by us because of another.
    """
    blamed = []
    for index, (rank, outcome) in enumerate(outcomes):
        if not outcome.succeeded and outcome.ended_by is not EndedBy.CASCADE:
            blamed.append((outcome.ended_at, rank, index))
    first = min(blamed, default=None)
    return None if first is None else first[2]


def _conditions(outcome: RunOutcome) -> frozenset[str]:
    """Add what follows from the facts to the engine's conditions."""
    found = set(outcome.conditions)
    if outcome.ended_by in _MEANS:
        found.add(_MEANS[outcome.ended_by])
    if outcome.ended_by is EndedBy.LOST and not found & LOST:
        found.add(FailureCondition.EXECUTOR_LOST)
    reasons = set()
    for container in outcome.containers:
        if container.exit_code:
            reasons.add(container.reason)
    if outcome.ended_by is EndedBy.ITSELF and not found:
        if not outcome.started:
            found.add(FailureCondition.LAUNCH_FAILED)
        elif reasons - {FailureCondition.OOM_KILLED}:
            found.add(FailureCondition.APP_ERROR)
    if FailureCondition.OOM_KILLED in reasons:
        found.add(FailureCondition.OOM_KILLED)
    return frozenset(found)
