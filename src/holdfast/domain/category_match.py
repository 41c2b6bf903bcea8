"""Finds the category of a failure.

Shipped Armada's semantics: any failed container counts, init containers included, and one that exited with 0 never
does; the first category with a matching rule wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.matchers import ConditionMatcher, ContainerSelector, ExitCodeMatcher, MessageMatcher
from holdfast.domain.policy.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.category import CategoryRule, FailureCategory
    from holdfast.domain.failure import Failure, RunOutcome

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
