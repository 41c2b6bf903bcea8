"""Policies compiled for fast decisions: defaults resolved, patterns compiled, most rules rejected in one step."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.matchers import considered, matchers_of
from holdfast.domain.policy.model import Action, AntiAffinity, ExitCodeOperator, Mutation, RetryPolicy, Rule
from holdfast.domain.policy.patterns import Pattern, PatternSet
from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.policy.matchers import FailureMatcher
    from holdfast.domain.policy.model import Backoff, Considered, MemoryGrowth


_OF_DRAINS = frozenset({FailureCondition.EVICTED, FailureCondition.END_UNKNOWN})
DEFAULT_RULE = "default"
"""The name under which a policy's default action is counted."""


def effective_policies(queue: Sequence[str], job: Sequence[str], default: str | None) -> tuple[str, ...]:
    """Compose the names of the policies that apply to a job.

    Args:
        queue: The queue's policies, which always apply and come first.
        job: The job's own, which are added to them.
        default: The policy that applies if neither names any.

    Returns:
        The names in order of evaluation, each once, at its first place.
    """
    names = tuple(dict.fromkeys(name for name in (*queue, *job) if name))
    if names or not default:
        return names
    return (default,)


class CompiledRule(Struct, frozen=True, kw_only=True):
    """A rule, or a policy's default action, with everything it inherits resolved."""

    policy: str | None
    revision: int | None
    name: str | None
    index: int | None
    """Index in its policy; ``None`` for the default action."""
    position: int
    """Index among all rules of the set."""
    action: Action
    counter: str
    reason: str
    """Why this rule decides, in Armada's exact words; a ``Hold``'s own reason if it has one."""
    limit: int | None = None
    """The limit of the rule or its policy; ``None`` inherits the global cap."""
    backoff: Backoff | None = None
    """The back-off of the rule or its policy; ``None`` inherits the global default."""
    avoid_node: bool = False
    avoid_devices: bool = False
    avoid_tried: bool = False
    """Whether the next attempt is kept off every node that was tried."""
    growth: MemoryGrowth | None = None
    matchers: tuple[FailureMatcher, ...] = ()
    about_drains: bool = False
    """Whether it may decide about a run whose node was drained: it names ``Evicted`` or ``EndUnknown``."""

    def considered(self, failure: Failure) -> Considered:
        """Say whether it matches, and why: by all matchers that hold, or all that do not."""
        return considered(self.policy or "", self.name or "", self.matchers, failure)


class PolicySet(Struct, frozen=True):
    """The policies that apply to a job, in order, ready to decide."""

    rules: tuple[CompiledRule, ...]
    """All rules in order of evaluation."""
    default: CompiledRule
    """What applies when no rule matches."""
    may_ignore: bool
    """Whether any rule's action is ``Ignore``."""
    index: RuleIndex

    @classmethod
    def compile(
        cls,
        policies: Sequence[RetryPolicy],
        *,
        infrastructure: RetryPolicy | None = None,
        first: Sequence[RetryPolicy] = (),
        unknown_end: RetryPolicy | None = None,
        missing: Sequence[str] = (),
    ) -> PolicySet:
        """Compile policies.

        Args:
            policies: Those that apply, in order; without any, only ``infrastructure`` retries.
            infrastructure: Its rules are tried after those of ``policies``, and before the default action of the
                first of these.
            first: Their rules are tried before those of ``policies``; their default actions are ignored.
            unknown_end: Its rules are tried before ``infrastructure``, and before the first rule that matches every
                failure, because such a rule says no more about an unknown end than a default action.
            missing: Names of policies that apply but do not exist; the reason names them if no rule matches.

        Raises:
            InvalidPolicy: A pattern is not RE2; readers check that before.
        """
        listed = _listed(*first, *policies)
        if unknown_end is not None:
            place = next((i for i, (_, _, rule) in enumerate(listed) if rule.matches_all), len(listed))
            listed[place:place] = _listed(unknown_end)
        own = range(len(_listed(*first)), len(listed))
        if infrastructure is not None:
            listed += _listed(infrastructure)
        rules = [
            _compile_rule(policy, rule, index, position=i, about_drains=i in own and _names_drains(rule))
            for i, (policy, index, rule) in enumerate(listed)
        ]
        default = _compile_default(policies[0], len(rules)) if policies else _no_policy(len(rules))
        if missing:
            default = evolve(default, reason=f"{default.reason}; {_missing_policies(missing)}")
        may_ignore = any(rule.action is Action.IGNORE for rule in (*rules, default))
        return cls(tuple(rules), default, may_ignore, RuleIndex([rule for _, _, rule in listed]))

    def first_match(self, failure: Failure) -> CompiledRule:
        """Return the first rule that matches a failure, or the default."""
        bits = self.index.candidates(failure)
        while bits:
            lowest = bits & -bits
            rule = self.rules[lowest.bit_length() - 1]
            for matcher in rule.matchers:
                if not matcher.holds(failure):
                    break
            else:
                return rule
            bits ^= lowest
        return self.default

    def about_drain(self, failure: Failure) -> PolicySet | None:
        """Return a set of only the rule that decides about a run whose node was drained, if there is one."""
        for rule in self.rules:
            if rule.about_drains and all(matcher.holds(failure) for matcher in rule.matchers):
                alone = evolve(rule, position=0)
                return PolicySet((alone,), self.default, rule.action is Action.IGNORE, RuleIndex([Rule(rule.action)]))
        return None

    def considered(self, failure: Failure) -> tuple[Considered, ...]:
        """List every rule that is tried, up to the one that matches."""
        last = self.first_match(failure).position
        return tuple(rule.considered(failure) for rule in self.rules[: last + 1])


def _listed(*policies: RetryPolicy) -> list[tuple[RetryPolicy, int, Rule]]:
    return [(policy, index, rule) for policy in policies for index, rule in enumerate(policy.rules)]


def _names_drains(rule: Rule) -> bool:
    return rule.conditions is not None and not _OF_DRAINS.isdisjoint(rule.conditions)


def _compile_rule(policy: RetryPolicy, rule: Rule, index: int, *, position: int, about_drains: bool) -> CompiledRule:
    name = rule.name or f"rule{index}"
    mutate = rule.mutate or Mutation()
    pattern, avoids = rule.termination_message, rule.anti_affinity or policy.anti_affinity
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
        avoid_node=avoids is AntiAffinity.NODE,
        avoid_devices=avoids is AntiAffinity.DEVICE,
        avoid_tried=mutate.avoid_same_node,
        growth=mutate.memory,
        matchers=matchers_of(rule, None if pattern is None else Pattern(pattern)),
        about_drains=about_drains,
    )


def _reason(rule: Rule) -> str:
    return rule.hold_reason or f"matched rule: {rule.action}"


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
        avoid_devices=policy.anti_affinity is AntiAffinity.DEVICE,
    )


def _missing_policies(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names))
    return f"retry policy {listed} does not exist" if len(names) == 1 else f"retry policies {listed} do not exist"


def _no_policy(position: int) -> CompiledRule:
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


class _Dimension:
    """The rules that accept each value of one dimension."""

    __slots__ = ("accepting", "indifferent", "used")

    def __init__(self, values_of_rules: Sequence[Collection[str | int] | None]) -> None:
        self.used = any(values is not None for values in values_of_rules)
        self.indifferent = _bits(values is None for values in values_of_rules)
        self.accepting: dict[str | int | None, int] = {}
        for bit, values in enumerate(values_of_rules):
            for value in values or ():
                self.accepting[value] = self.accepting.get(value, self.indifferent) | 1 << bit


class RuleIndex:
    """Rejects most rules of a set in one step; the rules' own matchers then decide.

    Each rule is one bit; bit 0 is the first. Every dimension (cause, condition, exit code, ...) gives the bits of the
    rules that could match the failure's value there: those without that matcher and those whose matcher accepts it.
    Their intersection holds every rule that matches, and few that do not, at a cost that hardly grows with the number
    of rules.
    """

    __slots__ = (
        "_all",
        "_codes",
        "_conditions",
        "_message_bits",
        "_messages",
        "_not_in",
        "_patterns",
        "_signals",
        "_words",
    )

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._all = (1 << len(rules)) - 1
        words = ((what, _Dimension([getattr(rule, field) for rule in rules])) for what, field in _WORDS)
        self._words: tuple[tuple[Callable[[Failure], str], dict[str | int | None, int], int], ...] = tuple(
            (attrgetter(what), dimension.accepting, dimension.indifferent)
            for what, dimension in words
            if dimension.used
        )
        self._conditions = _Dimension([rule.conditions for rule in rules])
        self._signals = _Dimension([rule.signals for rule in rules])
        self._codes = _Dimension([_codes_in(rule) for rule in rules])
        self._not_in = _bits(_excludes(rule) for rule in rules)
        patterns = {
            bit: rule.termination_message for bit, rule in enumerate(rules) if rule.termination_message is not None
        }
        self._message_bits = [1 << bit for bit in patterns]
        self._messages = sum(self._message_bits)
        self._patterns = PatternSet(list(patterns.values()))

    def candidates(self, failure: Failure) -> int:
        """Return the bits of all rules that may match a failure."""
        bits = self._all
        for read, accepting, indifferent in self._words:
            bits &= accepting.get(read(failure), indifferent)
        failed = [container for container in failure.containers if container.exit_code]
        if self._conditions.used:
            bits &= self._of_conditions(failure, failed)
        if self._codes.used:
            bits &= self._of_codes(failed)
        if self._signals.used:
            bits &= self._of_signals(failed)
        if bits & self._messages:
            bits &= ~self._messages | self._of_messages(failed)
        return bits

    def _of_conditions(self, failure: Failure, failed: Sequence[ContainerResult]) -> int:
        accepting, bits = self._conditions.accepting, self._conditions.indifferent
        for condition in failure.conditions:
            bits |= accepting.get(condition, 0)
        for container in failed:
            bits |= accepting.get(container.reason, 0)
        return bits

    def _of_codes(self, failed: Sequence[ContainerResult]) -> int:
        accepting, bits = self._codes.accepting, self._codes.indifferent
        for container in failed:
            bits |= self._not_in | accepting.get(container.exit_code, 0)
        return bits

    def _of_signals(self, failed: Sequence[ContainerResult]) -> int:
        accepting, bits = self._signals.accepting, self._signals.indifferent
        for container in failed:
            bits |= accepting.get(container.signal, 0)
        return bits

    def _of_messages(self, failed: Sequence[ContainerResult]) -> int:
        bits = 0
        for container in failed:
            matching = self._patterns.matching(container.message)
            if matching is None:
                return self._messages
            for index in matching:
                bits |= self._message_bits[index]
        return bits


_WORDS = (("cause", "causes"), ("category", "categories"), ("subcategory", "subcategories"))


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << bit for bit, flag in enumerate(flags) if flag)


def _codes_in(rule: Rule) -> Collection[int] | None:
    """List the codes a rule accepts; none for ``NotIn``, as any failed container may match it."""
    codes = rule.exit_codes
    if codes is None:
        return None
    return codes.values if codes.operator is ExitCodeOperator.IN else ()


def _excludes(rule: Rule) -> bool:
    return rule.exit_codes is not None and rule.exit_codes.operator is ExitCodeOperator.NOT_IN
