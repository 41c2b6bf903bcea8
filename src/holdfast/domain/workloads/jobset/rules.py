"""Decides which rule of a set's failure policy applies to each failed job.

Each rule in order is tried on all failed jobs; within a rule the earliest failure comes first, then the lowest global
index.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import considered, matches
from holdfast.domain.policy.model import Considered, SetAction, SetRule
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.record import Struct
from holdfast.errors import InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.policy.matchers import Matcher
    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.jobset.model import FailurePolicy


DEFAULT_RULE = SetRule(SetAction.RESTART_JOB_SET, "default")
"""What happens when no rule matches."""
_LONGEST_QUOTE = 120


class RuleMatch(Struct, frozen=True):
    """A failed job and the rule that applies to it; without an index, this is ``DEFAULT_RULE``."""

    child: Child
    index: int | None
    rule: SetRule


class _Reason(Struct, frozen=True):
    reasons: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.reason in self.reasons

    def because(self, child: Child, /) -> str:
        word = child.reason or "(none)"
        return f"failure reason {word} is {'' if self.holds(child) else 'not '}one of {', '.join(sorted(self.reasons))}"


class _Message(Struct, frozen=True):
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


class _Target(Struct, frozen=True):
    groups: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.group in self.groups

    def because(self, child: Child, /) -> str:
        names = ", ".join(sorted(self.groups))
        return f"replicatedJob {child.group or '(none)'} is {'' if self.holds(child) else 'not '}one of {names}"


class _InSet(Struct, frozen=True):
    """The job belongs to a replicated job; only the default action applies to one that does not."""

    def holds(self, child: Child, /) -> bool:
        return bool(child.group)

    def because(self, child: Child, /) -> str:
        return "the rule matches every failure" if child.group else "the job belongs to no replicatedJob"


@lru_cache(maxsize=2048)
def _matchers(rule: SetRule) -> tuple[Matcher[Child], ...]:
    """Return the matchers of a rule, cheapest first."""
    matchers: list[Matcher[Child]] = []
    if rule.replicated_jobs:
        matchers.append(_Target(rule.replicated_jobs))
    if rule.reasons:
        matchers.append(_Reason(rule.reasons))
    if rule.messages:
        matchers.append(_Message(_patterns(rule.messages), rule.messages))
    return tuple(matchers) or (_InSet(),)


def _patterns(texts: tuple[str, ...]) -> tuple[Pattern, ...]:
    """Compile patterns; one that is not RE2, which only lenient readers accept, never matches."""
    patterns = []
    for text in texts:
        try:
            patterns.append(Pattern(text))
        except InvalidPolicy:
            continue
    return tuple(patterns)


def taken(policy: FailurePolicy, failed: Sequence[Child]) -> Iterator[RuleMatch]:
    """Yield every failed job with the rule that applies, in the order of judging."""
    left = sorted(failed, key=attrgetter("failed_at", "global_index", "name"))
    for index, rule in enumerate(policy.rules):
        matchers, passed = _matchers(rule), []
        for child in left:
            if child.group and matches(matchers, child):
                yield RuleMatch(child, index, rule)
            else:
                passed.append(child)
        left = passed
    for child in left:
        yield RuleMatch(child, None, DEFAULT_RULE)


def explained(policy: FailurePolicy, rule_match: RuleMatch) -> tuple[Considered, ...]:
    """List every rule tried on a failed job, up to the one that applied."""
    last = len(policy.rules) if rule_match.index is None else rule_match.index + 1
    tried: tuple[Considered, ...] = ()
    for rule in policy.rules[:last]:
        tried += (considered("failurePolicy", rule.name, _matchers(rule), rule_match.child),)
    return tried
