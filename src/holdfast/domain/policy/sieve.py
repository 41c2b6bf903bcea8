"""Rejects most rules of a set at once; leaves the exact answer to the rules' own matchers.

Each rule is one bit. Every dimension (cause, condition, exit code, ...) gives the bits of the rules that could match
the failure's value there: those without that matcher and those whose matcher accepts it. Their intersection holds
every rule that matches, and few that do not, at a cost that hardly grows with the number of rules.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import ExitCodeOperator
from holdfast.domain.policy.patterns import any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.policy.model import Rule

_ANY_CODE = -1
"""Stands for every code a ``NotIn`` might accept."""


class _Dimension:
    """Which rules accept which value of one dimension."""

    __slots__ = ("_accepting", "_indifferent", "used")

    def __init__(self, wanted: Sequence[Collection[str | int] | None]) -> None:
        self.used = any(values is not None for values in wanted)
        self._indifferent = sum(1 << bit for bit, values in enumerate(wanted) if values is None)
        self._accepting: dict[str | int, int] = {}
        for bit, values in enumerate(wanted):
            for value in values or ():
                self._accepting[value] = self._accepting.get(value, 0) | 1 << bit

    def bits(self, values: Iterable[str | int]) -> int:
        """Return the rules that accept any of the values, or do not care."""
        found, accepting = self._indifferent, self._accepting
        for value in values:
            if value in accepting:
                found |= accepting[value]
        return found


class Sieve:
    """Bit masks over the rules of a set, in order; bit 0 is the first rule."""

    __slots__ = ("_all", "_any_message", "_codes", "_conditions", "_messages", "_words")

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Index the rules."""
        self._all = (1 << len(rules)) - 1
        words = ((what, _Dimension([getattr(rule, field) for rule in rules])) for what, field in _WORDS)
        self._words: tuple[tuple[Callable[[Failure], str], _Dimension], ...] = tuple(
            (attrgetter(what), dimension) for what, dimension in words if dimension.used
        )
        self._conditions = _Dimension([rule.conditions for rule in rules])
        self._codes = _Dimension([_codes_of(rule) for rule in rules])
        self._messages = sum(1 << bit for bit, rule in enumerate(rules) if rule.termination_message is not None)
        self._any_message = any_of(rule.termination_message for rule in rules if rule.termination_message is not None)

    def candidates(self, failure: Failure) -> int:
        """Return the bits of all rules that may match."""
        bits = self._all
        for read, dimension in self._words:
            bits &= dimension.bits((read(failure),))
        failed = [container for container in failure.containers if container.exit_code]
        if self._conditions.used:
            bits &= self._conditions.bits(_condition_names(failure, failed))
        if self._codes.used:
            bits &= self._codes.bits(_exit_codes(failed))
        if bits & self._messages and not self._some_message_matches(failed):
            bits &= ~self._messages
        return bits

    def _some_message_matches(self, failed: Sequence[ContainerResult]) -> bool:
        pattern = self._any_message
        return any(pattern.found_in(container.message) if pattern else container.message for container in failed)


_WORDS = (("cause", "causes"), ("category", "categories"), ("subcategory", "subcategories"))


def _codes_of(rule: Rule) -> Collection[int] | None:
    codes = rule.exit_codes
    if codes is None:
        return None
    return codes.values if codes.operator is ExitCodeOperator.IN else (_ANY_CODE,)


def _condition_names(failure: Failure, failed: Sequence[ContainerResult]) -> list[str]:
    return [*failure.conditions, *(container.reason for container in failed)]


def _exit_codes(failed: Sequence[ContainerResult]) -> list[int]:
    """List the codes of failed containers, and the one that stands for any when there is one."""
    codes = [container.exit_code for container in failed if container.exit_code]
    return [*codes, _ANY_CODE] if codes else codes
