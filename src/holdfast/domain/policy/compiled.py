"""Policies compiled for fast decisions: defaults resolved, patterns compiled, most rules rejected at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import matchers_of
from holdfast.domain.policy.model import Action, AntiAffinity, Mutation, RetryPolicy
from holdfast.domain.policy.ordered import considered, matches
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.policy.rule_index import RuleIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.matchers import FailureMatcher
    from holdfast.domain.policy.model import Backoff, Considered, MemoryGrowth, Rule

DEFAULT_RULE = "default"
"""The name a policy's default action is counted under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """A rule, or a policy's default action, with everything it inherits resolved."""

    policy: str | None
    revision: int | None
    name: str | None
    index: int | None
    """Place in its policy; ``None`` for the default action."""
    position: int
    """Place among all rules of the set."""
    action: Action
    counter: str
    reason: str
    """Why this rule decides, in Armada's exact words; a ``Hold``'s own reason if it has one."""
    limit: int | None = None
    """The rule's or its policy's; ``None`` inherits the global cap."""
    backoff: Backoff | None = None
    """The rule's or its policy's; ``None`` inherits the global default."""
    avoid_node: bool = False
    growth: MemoryGrowth | None = None
    matchers: tuple[FailureMatcher, ...] = ()

    def considered(self, failure: Failure) -> Considered:
        """Say whether it matches, and why: all matchers that hold, or all that do not."""
        return considered(self.policy or "", self.name or "", self.matchers, failure)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policies that apply to a job, in order, ready to decide."""

    rules: tuple[CompiledRule, ...]
    """All rules in order of evaluation."""
    default: CompiledRule
    """What applies when no rule matches."""
    may_ignore: bool
    """Whether any rule's action is ``Ignore``."""
    index: RuleIndex

    @classmethod
    def compile(cls, policies: Sequence[RetryPolicy], *, infrastructure: RetryPolicy | None = None) -> PolicySet:
        """Compile policies.

        Args:
            policies: Those that apply, in order; with none at all only ``infrastructure`` retries.
            infrastructure: Rules tried after all of these and before the first one's default action, which
                stays theirs.

        Raises:
            InvalidPolicy: A pattern is not RE2; readers check that before.
        """
        rules: list[CompiledRule] = []
        sources: list[Rule] = []
        for policy in (*policies, *([infrastructure] if infrastructure else [])):
            for index, rule in enumerate(policy.rules):
                rules.append(_compile_rule(policy, rule, index, position=len(rules)))
                sources.append(rule)
        default = _compile_default(policies[0], len(rules)) if policies else _nothing_applies(len(rules))
        may_ignore = any(rule.action is Action.IGNORE for rule in (*rules, default))
        return cls(tuple(rules), default, may_ignore, RuleIndex(sources))

    def first_match(self, failure: Failure) -> CompiledRule:
        """Return the first rule that matches a failure, else the default."""
        bits = self.index.candidates(failure)
        while bits:
            lowest = bits & -bits
            rule = self.rules[lowest.bit_length() - 1]
            if matches(rule.matchers, failure):
                return rule
            bits ^= lowest
        return self.default

    def considered(self, failure: Failure) -> tuple[Considered, ...]:
        """List every rule that is looked at, up to the one that matches."""
        last = self.first_match(failure).position
        return tuple(rule.considered(failure) for rule in self.rules[: last + 1])


def _compile_rule(policy: RetryPolicy, rule: Rule, index: int, *, position: int) -> CompiledRule:
    name = rule.name or f"rule{index}"
    mutate = rule.mutate or Mutation()
    pattern = rule.termination_message
    return CompiledRule(
        policy=policy.name,
        revision=policy.revision,
        name=name,
        index=index,
        position=position,
        action=rule.action,
        counter=f"{policy.name}/{name}",
        reason=_reason(rule),
        limit=policy.retry_limit if rule.retry_limit is None else rule.retry_limit,
        backoff=policy.backoff if rule.backoff is None else rule.backoff,
        avoid_node=mutate.avoid_same_node or (rule.anti_affinity or policy.anti_affinity) is AntiAffinity.NODE,
        growth=mutate.memory,
        matchers=matchers_of(rule, None if pattern is None else Pattern(pattern)),
    )


def _reason(rule: Rule) -> str:
    if rule.action is Action.HOLD and rule.hold_reason:
        return rule.hold_reason
    return f"matched rule: {rule.action}"


def _compile_default(policy: RetryPolicy, position: int) -> CompiledRule:
    return CompiledRule(
        policy=policy.name,
        revision=policy.revision,
        name=DEFAULT_RULE,
        index=None,
        position=position,
        action=policy.default_action,
        counter=f"{policy.name}/{DEFAULT_RULE}",
        reason="no rule matched, using default action",
        limit=policy.retry_limit,
        backoff=policy.backoff,
        avoid_node=policy.anti_affinity is AntiAffinity.NODE,
    )


def _nothing_applies(position: int) -> CompiledRule:
    return CompiledRule(
        policy=None,
        revision=None,
        name=None,
        index=None,
        position=position,
        action=Action.FAIL,
        counter=DEFAULT_RULE,
        reason="no retry policy applies",
    )
