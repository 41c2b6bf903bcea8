"""Decides which rule of a set's failure policy takes which failed job, and says why.

Rule-major: rules are tried in order over all failed jobs; within a rule the earliest failure comes first, ties by
global index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import Considered, SetAction, SetRule
from holdfast.domain.policy.ordered import considered, matches
from holdfast.domain.policy.patterns import Pattern
from holdfast.errors import InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.policy.ordered import Matcher
    from holdfast.domain.workloads.jobset.model import FailurePolicy
    from holdfast.domain.workloads.jobset.state import Child

DEFAULT_RULE = "default"
DEFAULT_ACTION = SetAction.RESTART_JOB_SET
"""What happens when no rule matches."""
_LONGEST_QUOTE = 120


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A failed job and the rule that takes it; no rule is the default action."""

    child: Child
    index: int | None
    rule: SetRule | None

    @property
    def action(self) -> SetAction:
        """What is to be done."""
        return DEFAULT_ACTION if self.rule is None else self.rule.action

    @property
    def name(self) -> str:
        """The name its restarts are counted under."""
        return DEFAULT_RULE if self.rule is None else self.rule.name


@dataclass(frozen=True, slots=True)
class _Reason:
    wanted: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.reason in self.wanted

    def because(self, child: Child, /) -> str:
        word = child.reason or "(none)"
        return f"failure reason {word} is {'' if self.holds(child) else 'not '}one of {', '.join(sorted(self.wanted))}"


@dataclass(frozen=True, slots=True)
class _Message:
    patterns: tuple[Pattern, ...]
    texts: tuple[str, ...]

    def holds(self, child: Child, /) -> bool:
        return any(pattern.found_in(child.message) for pattern in self.patterns)

    def because(self, child: Child, /) -> str:
        message = repr(child.message[:_LONGEST_QUOTE])
        for pattern in self.patterns:
            if pattern.found_in(child.message):
                return f"failure message {message} matches {pattern.text!r}"
        return f"failure message {message} matches none of {', '.join(map(repr, self.texts))}"


@dataclass(frozen=True, slots=True)
class _Target:
    wanted: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.group in self.wanted

    def because(self, child: Child, /) -> str:
        names = ", ".join(sorted(self.wanted))
        return f"replicatedJob {child.group or '(none)'} is {'' if self.holds(child) else 'not '}one of {names}"


@dataclass(frozen=True, slots=True)
class _InSet:
    """The job belongs to a replicated job; only the default action takes one that does not."""

    def holds(self, child: Child, /) -> bool:
        return bool(child.group)

    def because(self, child: Child, /) -> str:
        return "the rule matches every failure" if child.group else "the job belongs to no replicatedJob"


@lru_cache(maxsize=512)
def _compiled(rules: tuple[SetRule, ...]) -> tuple[tuple[Matcher[Child], ...], ...]:
    """Return the matchers of all rules, cheapest first."""
    return tuple(_matchers(rule) for rule in rules)


def _matchers(rule: SetRule) -> tuple[Matcher[Child], ...]:
    found: list[Matcher[Child]] = []
    if rule.replicated_jobs:
        found.append(_Target(rule.replicated_jobs))
    if rule.reasons:
        found.append(_Reason(rule.reasons))
    if rule.messages:
        found.append(_Message(_patterns(rule.messages), rule.messages))
    return tuple(found) or (_InSet(),)


def _patterns(texts: tuple[str, ...]) -> tuple[Pattern, ...]:
    """Compile patterns; one that is not RE2, which only lenient readers accept, never matches."""
    found = []
    for text in texts:
        try:
            found.append(Pattern(text))
        except InvalidPolicy:
            continue
    return tuple(found)


def taken(policy: FailurePolicy, failed: Sequence[Child]) -> Iterator[RuleMatch]:
    """Yield every failed job with the rule that takes it, in the order of judging."""
    left = sorted(failed, key=_blame)
    for index, (rule, matchers) in enumerate(zip(policy.rules, _compiled(policy.rules), strict=True)):
        passed = []
        for child in left:
            if child.group and matches(matchers, child):
                yield RuleMatch(child, index, rule)
            else:
                passed.append(child)
        left = passed
    for child in left:
        yield RuleMatch(child, None, None)


def _blame(child: Child) -> tuple[float, int, str]:
    return (child.failed_at, child.global_index, child.name)


def explained(policy: FailurePolicy, taken: RuleMatch) -> tuple[Considered, ...]:
    """List every rule tried on a failed job, up to the one that took it."""
    last = len(policy.rules) if taken.index is None else taken.index + 1
    pairs = zip(policy.rules[:last], _compiled(policy.rules), strict=False)
    return tuple(considered("failurePolicy", rule.name, matchers, taken.child) for rule, matchers in pairs)
