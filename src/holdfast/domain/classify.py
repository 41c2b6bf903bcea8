"""Turns the facts of how a run ended into conditions, one cause and a category.

A user's cancel wins over everything. Out of memory needs evidence: exit code 137 alone is a program's own code.
Categories have shipped Armada's semantics: any failed container counts, init containers included, and one that exited
with 0 never does; the first category with a matching rule wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import LOST, Cause, EndedBy, Failure, FailureCondition
from holdfast.domain.policy.matchers import ConditionMatcher, ContainerSelector, ExitCodeMatcher, MessageMatcher
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import shortage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.category import CategoryRule, FailureCategory
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.policy.model import Action

    Test = Callable[[Failure, RunOutcome], bool]

_OF_POD = frozenset(condition.value for condition in FailureCondition) - {
    FailureCondition.OOM_KILLED,
    FailureCondition.APP_ERROR,
}
"""Conditions of the whole run, which hold whichever container a rule names."""


class CategoryMatch(Struct, frozen=True):
    """The category of a failure; empty names if there is none."""

    category: str = ""
    subcategory: str = ""
    hint: str = ""
    pod_action: str = "Retain"
    suggests: Action | None = None


class CompiledCategoryRule(Struct, frozen=True):
    """One rule of a category, with cheap checks that rule it out before its tests run."""

    tests: tuple[Test, ...]
    """All of these must hold."""
    match: CategoryMatch
    """The category if they do."""
    conditions: frozenset[str] | None = None
    """If set, one of these must be among the failure's conditions or its containers' reasons."""
    of_output: bool = False
    """Whether it matches only runs that printed something."""


class CompiledCategories(Struct, frozen=True):
    """Categories in order of precedence, ready to match."""

    rules: tuple[CompiledCategoryRule, ...] = ()
    otherwise: CategoryMatch = CategoryMatch()

    @classmethod
    def compile(
        cls,
        categories: Sequence[FailureCategory],
        *,
        built_in: Sequence[FailureCategory] = (),
        default_category: str = "",
        default_subcategory: str = "",
        last: Sequence[FailureCategory] = (),
    ) -> CompiledCategories:
        """Compile categories.

        Args:
            categories: In any order; they are tried by ``precedence``, then by name.
            built_in: Tried next, in this order: first all on the error line alone, then all on the whole output, which
                may also show errors that the program has overcome.
            default_category: For failures that match no category.
            default_subcategory: For the same failures.
            last: Tried after all others, whatever failed.

        Raises:
            InvalidPolicy: A pattern is not RE2; readers check that before.
        """
        ordered = sorted(categories, key=lambda category: (category.precedence, category.name))
        rules = [_compiled(category, rule) for category in ordered for rule in category.rules]
        listed = [(category, rule) for category in built_in for rule in category.rules]
        of_logs = [_on_error_line(category, rule, rule.log) for category, rule in listed if rule.log is not None]
        anywhere = [_compiled(category, rule, _is_programs) for category, rule in listed]
        ending = [_compiled(category, rule) for category in last for rule in category.rules]
        return cls((*rules, *of_logs, *anywhere, *ending), CategoryMatch(default_category, default_subcategory))

    def match(self, failure: Failure, outcome: RunOutcome) -> CategoryMatch:
        """Find the category of a failure, by it and the outcome it was classified from."""
        printed = bool(failure.error_line or outcome.log_matches or outcome.log_tail)
        conditions = set(failure.conditions)
        for container in failure.containers:
            conditions.add(container.reason)
        for rule in self.rules:
            if (rule.of_output and not printed) or (
                rule.conditions is not None and rule.conditions.isdisjoint(conditions)
            ):
                continue
            if all(test(failure, outcome) for test in rule.tests):
                return rule.match
        return self.otherwise


NO_CATEGORIES = CompiledCategories()


def _compiled(category: FailureCategory, rule: CategoryRule, *first: Test) -> CompiledCategoryRule:
    tests = (*first, *_tests(rule))
    return CompiledCategoryRule(tests, _match(category, rule), rule.conditions, of_output=rule.log is not None)


def _on_error_line(category: FailureCategory, rule: CategoryRule, log: str) -> CompiledCategoryRule:
    """Compile only the log pattern of a rule, to be searched in the error line."""
    pattern = Pattern(log)
    tests: tuple[Test, ...] = (_is_programs, lambda failure, _: pattern.found_in(failure.error_line))
    return CompiledCategoryRule(tests, _match(category, rule), of_output=True)


def _match(category: FailureCategory, rule: CategoryRule) -> CategoryMatch:
    hint = rule.hint or category.hint
    return CategoryMatch(category.name, rule.subcategory, hint, category.pod_action, rule.suggests)


_OF_PROGRAMS = frozenset(
    {Cause.KERNEL_NONZERO_EXIT, Cause.EXECUTION_TIMEOUT, Cause.STALLED, Cause.OOM_KILLED, Cause.UNKNOWN}
)
"""Causes that the output may explain; if the node failed, the last lines of a program mean nothing."""


def _is_programs(failure: Failure, _: RunOutcome) -> bool:
    return failure.cause in _OF_PROGRAMS


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
    return lambda _, outcome: (
        any(log_match.pattern == pattern.text for log_match in outcome.log_matches)
        or any(pattern.found_in(line) for line in outcome.log_tail)
    )


def _in_pod_error(pattern: Pattern) -> Test:
    return lambda _, outcome: pattern.found_in(outcome.message)


def _in_events(pattern: Pattern, rule: CategoryRule) -> Test:
    return lambda _, outcome: any(
        (not rule.pod_event_type or event.type == rule.pod_event_type)
        and (not rule.pod_event_reason or event.reason == rule.pod_event_reason)
        and pattern.found_in(event.message)
        for event in outcome.events
    )


_BY_USERS = frozenset({EndedBy.USER, EndedBy.SUSPENSION})
_MEANS: dict[EndedBy, FailureCondition] = {
    EndedBy.DEADLINE: FailureCondition.DEADLINE_EXCEEDED,
    EndedBy.STALL: FailureCondition.STALLED,
    EndedBy.MEMORY: FailureCondition.OOM_KILLED,
    EndedBy.PREEMPTION: FailureCondition.PREEMPTED,
    EndedBy.DRAIN: FailureCondition.EVICTED,
    EndedBy.EVICTION: FailureCondition.EVICTED,
}
_CAUSES: tuple[tuple[FailureCondition, Cause], ...] = (
    (FailureCondition.OOM_KILLED, Cause.OOM_KILLED),
    (FailureCondition.IMAGE_PULL_FAILED, Cause.IMAGE_PULL_FAILURE),
    (FailureCondition.DEADLINE_EXCEEDED, Cause.EXECUTION_TIMEOUT),
    (FailureCondition.STALLED, Cause.STALLED),
    (FailureCondition.UNSCHEDULABLE, Cause.SCHEDULER_TIMEOUT),
    (FailureCondition.NODE_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.EXECUTOR_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.PREEMPTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.EVICTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.LAUNCH_FAILED, Cause.AGENT_TRANSIENT),
    (FailureCondition.APP_ERROR, Cause.KERNEL_NONZERO_EXIT),
)
"""The first condition that holds determines the cause."""
IMPOSSIBLE = frozenset({"CommandNotFound", "NotExecutable", "InvalidCommand"})
"""Reasons why a program could not be started that a retry does not change."""


def classify(outcome: RunOutcome, *, rank: int = 0, categories: CompiledCategories = NO_CATEGORIES) -> Failure:
    """Classify a run that did not succeed.

    Args:
        outcome: The facts.
        rank: The run's rank in its attempt.
        categories: The categories, compiled.

    Returns:
        The failure, with every condition that holds, reported or derived.
    """
    conditions = _conditions(outcome)
    failure = Failure(
        cause=_cause(outcome, conditions),
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
        error_line=outcome.error_line,
        log_matches=outcome.log_matches,
    )
    if categories == NO_CATEGORIES:
        return failure
    match = categories.match(failure, outcome)
    suggestion = "" if match.suggests is None else str(match.suggests)
    return evolve(
        failure, category=match.category, subcategory=match.subcategory, hint=match.hint, suggestion=suggestion
    )


_STOPPED_BY_US = frozenset({EndedBy.CASCADE, EndedBy.SUSPENSION, EndedBy.DRAIN})


def initiating_failure(outcomes: Sequence[tuple[int, RunOutcome]]) -> int | None:
    """Find the failure that explains the others: the earliest by time, then by rank.

    A run that could not be started because of a shortage comes first: what the others did meanwhile means nothing, as
    the attempt never ran as a whole. But if the first failure is one of the infrastructure, which is retried
    automatically, a run whose end is unknown is preferred, because that one may have to be held or failed instead.

    Args:
        outcomes: Rank and outcome of each run that has ended.

    Returns:
        Its index; ``None`` if every run succeeded or was stopped by Holdfast.
    """
    blamed = []
    for index, (rank, outcome) in enumerate(outcomes):
        if not outcome.succeeded and outcome.ended_by not in _STOPPED_BY_US:
            blamed.append((outcome.started or shortage_of(outcome) is None, outcome.ended_at, rank, index))
    first = min(blamed, default=None)
    if first is None:
        return None
    if _retried_unasked(outcomes[first[-1]][1]):
        first = min((candidate for candidate in blamed if outcomes[candidate[-1]][1].end_unknown), default=first)
    return first[-1]


def _retried_unasked(outcome: RunOutcome) -> bool:
    """Whether the infrastructure ended a run: it was lost, preempted or evicted, or its program could not start."""
    if outcome.ended_by is EndedBy.ITSELF:
        return not outcome.started or not LOST.isdisjoint(outcome.conditions)
    return outcome.lost or outcome.ended_by in {EndedBy.PREEMPTION, EndedBy.EVICTION}


def _cause(outcome: RunOutcome, conditions: frozenset[str]) -> Cause:
    if outcome.ended_by in _BY_USERS:
        return Cause.USER_CANCELLED
    if FailureCondition.LAUNCH_FAILED in conditions and any(
        container.reason in IMPOSSIBLE for container in outcome.containers
    ):
        return Cause.VALIDATION_ERROR
    return next((cause for condition, cause in _CAUSES if condition in conditions), Cause.UNKNOWN)


def _conditions(outcome: RunOutcome) -> frozenset[str]:
    """Add the conditions that follow from the facts to those that the engine reported."""
    conditions = set(outcome.conditions)
    if outcome.ended_by in _MEANS:
        conditions.add(_MEANS[outcome.ended_by])
    if outcome.ended_by is EndedBy.LOST and not conditions & LOST:
        conditions.add(FailureCondition.EXECUTOR_LOST)
    if not LOST.isdisjoint(conditions) and outcome.end_unknown:
        conditions.add(FailureCondition.END_UNKNOWN)
    reasons = set()
    for container in outcome.containers:
        if container.exit_code:
            reasons.add(container.reason)
    if outcome.ended_by is EndedBy.ITSELF and not conditions:
        if not outcome.started:
            conditions.add(FailureCondition.LAUNCH_FAILED)
        elif reasons - {FailureCondition.OOM_KILLED}:
            conditions.add(FailureCondition.APP_ERROR)
    if FailureCondition.OOM_KILLED in reasons:
        conditions.add(FailureCondition.OOM_KILLED)
    return frozenset(conditions)
