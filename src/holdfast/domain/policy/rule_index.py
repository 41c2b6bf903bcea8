"""Rejects most rules of a set at once; the rules' own matchers then decide.

Each rule is one bit. Every dimension (cause, condition, exit code, ...) gives the bits of the rules that could match
the failure's value there: those without that matcher and those whose matcher accepts it. Their intersection holds
every rule that matches, and few that do not, at a cost that hardly grows with the number of rules.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import ExitCodeOperator
from holdfast.domain.policy.patterns import PatternSet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.policy.model import Rule


class _Dimension:
    """Which rules accept which value of one dimension."""

    __slots__ = ("accepting", "indifferent", "used")

    def __init__(self, wanted: Sequence[Collection[str | int] | None]) -> None:
        self.used = any(values is not None for values in wanted)
        self.indifferent = _bits(values is None for values in wanted)
        self.accepting: dict[str | int | None, int] = {}
        for bit, values in enumerate(wanted):
            for value in values or ():
                self.accepting[value] = self.accepting.get(value, self.indifferent) | 1 << bit


class RuleIndex:
    """Bit masks over the rules of a set, in order; bit 0 is the first rule."""

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
        """Index the rules."""
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
        """Return the bits of all rules that may match."""
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
            found = self._patterns.matching(container.message)
            if found is None:
                return self._messages
            for index in found:
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
