"""The matchers of rules: whether each holds for a failure, and why, with the values compared."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from holdfast.domain.failure import FailureCondition, signal_name
from holdfast.domain.policy.model import Considered, ContainerScope, ExitCodeOperator
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.policy.model import ExitCodes, Rule

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


class Matcher(Protocol[S_contra]):
    """One test of a rule on a subject."""

    def holds(self, subject: S_contra, /) -> bool:
        """Whether it matches."""

    def because(self, subject: S_contra, /) -> str:
        """Say why it does or does not."""


def matches(matchers: Iterable[Matcher[S]], subject: S) -> bool:
    """Whether all matchers of a rule hold; a rule without any matches everything."""
    for matcher in matchers:  # noqa: SIM110 - all() over a generator takes twice as long, on the hottest path
        if not matcher.holds(subject):
            return False
    return True


def considered(policy: str, rule: str, matchers: Iterable[Matcher[S]], subject: S) -> Considered:
    """Say whether a rule matches, and why: by all matchers that hold, or all that do not."""
    listed = tuple(matchers)
    matched = matches(listed, subject)
    reasons = [matcher.because(subject) for matcher in listed if matcher.holds(subject) is matched]
    return Considered(policy, rule, matched, "; ".join(reasons) or "the rule matches every failure")


_LONGEST_QUOTE = 120
_CONDITIONS = frozenset(condition.value for condition in FailureCondition)


FailureMatcher: TypeAlias = "Matcher[Failure]"
"""One test of a rule on a failure."""


class ContainerSelector(Struct, frozen=True):
    """Selects the failed containers that a rule considers, never one that exited with 0 or did not end."""

    name: str | None = None
    init: bool = False

    def of(self, failure: Failure) -> list[ContainerResult]:
        """Select from the containers of a failure: the main ones in order, then init containers if they count."""
        return self.of_containers(failure.containers)

    def of_containers(self, containers: Iterable[ContainerResult]) -> list[ContainerResult]:
        """Select from containers, main ones first."""
        selected = [
            container
            for container in containers
            if container.exit_code
            and (self.init or not container.init)
            and (self.name is None or container.name == self.name)
        ]
        if self.init and len(selected) > 1:
            selected.sort(key=attrgetter("init"))
        return selected

    def why_none(self) -> str:
        """Say that no container is selected."""
        text = "no container failed" if self.name is None else f"container {self.name!r} did not fail"
        return text if self.init else f"{text} (init containers are not considered)"


class ContainerMatcher(Struct, frozen=True):
    """The named container failed."""

    selector: ContainerSelector

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return bool(self.selector.of(failure))

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        return f"container {self.selector.name!r} failed" if self.holds(failure) else self.selector.why_none()


class ExitCodeMatcher(Struct, frozen=True):
    """A failed container's exit code is, or is not, one of these; 0 never matches, because it is no failure."""

    selector: ContainerSelector
    codes: ExitCodes

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        expected = self.codes.operator is ExitCodeOperator.IN
        return any((container.exit_code in self.codes.values) is expected for container in self._selected(failure))

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        looked_at = self._selected(failure)
        if not looked_at:
            return self.selector.why_none()
        is_in = self.holds(failure) is (self.codes.operator is ExitCodeOperator.IN)
        codes = _listed(container.exit_code for container in looked_at)
        return f"exit code {codes} is {'' if is_in else 'not '}one of {_listed(self.codes.values)}"

    def _selected(self, failure: Failure) -> list[ContainerResult]:
        selected = self.selector.of(failure)
        return selected[:1] if self.codes.scope is ContainerScope.FIRST_FAILED else selected


class ConditionMatcher(Struct, frozen=True):
    """One of these conditions holds, for the named container if there is a name."""

    selector: ContainerSelector
    conditions: frozenset[str]
    of_pod: frozenset[str] = frozenset()
    """Conditions that belong to the whole run even when a container is named."""

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return not self.conditions.isdisjoint(self._present(failure))

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        present = self._present(failure)
        message = "" if self.selector.name is None else f" for container {self.selector.name!r}"
        if hit := self.conditions & present:
            return f"condition {_listed(hit)} holds{message}"
        missing = f"condition {_listed(self.conditions)} does not hold{message}"
        return f"{missing}, only {_listed(present)}" if present else missing

    def _present(self, failure: Failure) -> set[str]:
        looked_at = self.selector.of(failure)
        present = {container.reason for container in looked_at if container.reason in _CONDITIONS}
        if self.selector.name is None:
            return present | failure.conditions
        present |= failure.conditions & self.of_pod
        for container in looked_at:
            present |= _conditions_of(container, failure)
        return present


def _conditions_of(container: ContainerResult, failure: Failure) -> set[str]:
    """Conditions of the run that this container caused, though its reason does not say so."""
    if container.reason == FailureCondition.OOM_KILLED:
        return set()
    conditions: set[str] = set()
    if FailureCondition.APP_ERROR in failure.conditions:
        conditions.add(FailureCondition.APP_ERROR)
    # An engine's evidence of OOM is about the whole run; only a sole failed container can be meant.
    if FailureCondition.OOM_KILLED in failure.conditions and len(failure.failed_containers) == 1:
        conditions.add(FailureCondition.OOM_KILLED)
    return conditions


class MessageMatcher(Struct, frozen=True):
    """The pattern occurs in a failed container's termination message; never in an empty one."""

    selector: ContainerSelector
    pattern: Pattern

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return any(self.pattern.found_in(container.message) for container in self.selector.of(failure))

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        looked_at = self.selector.of(failure)
        if not looked_at:
            return self.selector.why_none()
        for container in looked_at:
            if self.pattern.found_in(container.message):
                return f"{_message_of(container)} matches {self.pattern.text!r}"
        messages = [_message_of(container) for container in looked_at if container.message]
        if not messages:
            return f"the program left no termination message to match {self.pattern.text!r}"
        return f"{', '.join(messages)} does not match {self.pattern.text!r}"


def _message_of(container: ContainerResult) -> str:
    """Quote a container's message, or the end of its log."""
    if not container.message_from_log:
        return f"termination message {_quoted(container.message)}"
    text = container.message
    return f"the end of its log {text if len(text) <= _LONGEST_QUOTE else '...' + text[3 - _LONGEST_QUOTE :]!r}"


class LogMatcher(Struct, frozen=True):
    """The pattern was found in the run's output when it ended, or occurs in the line that is kept of it."""

    pattern: Pattern

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return self._line(failure) is not None

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        line = self._line(failure)
        if line is not None:
            return f"line {_quoted(line)} of its output matches {self.pattern.text!r}"
        if not failure.error_line:
            return f"it printed nothing to match {self.pattern.text!r}"
        return f"the end of its output does not match {self.pattern.text!r}"

    def _line(self, failure: Failure) -> str | None:
        for log_match in failure.log_matches:
            if log_match.pattern == self.pattern.text:
                return log_match.line
        return failure.error_line if self.pattern.found_in(failure.error_line) else None


class WordMatcher(Struct, frozen=True):
    """The failure's cause, category or subcategory is one of these."""

    what: str
    words: frozenset[str]
    read: Callable[[Failure], str]

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return self.read(failure) in self.words

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        word = self.read(failure)
        if not word:
            return f"the failure has no {self.what}, so it is not one of {_listed(self.words)}"
        return f"{self.what} {word} is {'' if self.holds(failure) else 'not '}one of {_listed(self.words)}"


class SignalMatcher(Struct, frozen=True):
    """One of these signals ended a failed container."""

    selector: ContainerSelector
    signals: frozenset[int]

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        return any(container.signal in self.signals for container in self.selector.of(failure))

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        seen = {container.signal for container in self.selector.of(failure) if container.signal is not None}
        signal_names = ", ".join(signal_name(number) for number in sorted(self.signals))
        if not seen:
            return f"it was not ended by a signal, so not by one of {signal_names}"
        hit = seen & self.signals
        names = ", ".join(signal_name(number) for number in sorted(hit or seen))
        return f"signal {names} is {'' if hit else 'not '}one of {signal_names}"


class RanMatcher(Struct, frozen=True):
    """The run was shorter, or longer, than this; false if it never started."""

    limit_s: float
    shorter: bool

    def holds(self, failure: Failure) -> bool:
        """Whether it matches."""
        ran_s = failure.ran_s
        if ran_s is None:
            return False
        return ran_s < self.limit_s if self.shorter else ran_s > self.limit_s

    def because(self, failure: Failure) -> str:
        """Say why it does or does not."""
        compared = f"{'shorter' if self.shorter else 'longer'} than {format_duration(self.limit_s)}"
        if failure.ran_s is None:
            return f"it never ran, so not {compared}"
        return f"it ran for {format_duration(failure.ran_s)}, {'' if self.holds(failure) else 'not '}{compared}"


def matchers_of(rule: Rule, pattern: Pattern | None) -> tuple[FailureMatcher, ...]:
    """Return a rule's matchers, cheapest first.

    Args:
        rule: The rule.
        pattern: Its termination message pattern, compiled.
    """
    selector = ContainerSelector(rule.container_name, rule.include_init_containers)
    words = (("cause", rule.causes), ("category", rule.categories), ("subcategory", rule.subcategories))
    matchers: list[FailureMatcher] = [
        WordMatcher(what, words_wanted, attrgetter(what)) for what, words_wanted in words if words_wanted is not None
    ]
    if rule.ran_shorter_than_s is not None:
        matchers.append(RanMatcher(rule.ran_shorter_than_s, shorter=True))
    if rule.ran_longer_than_s is not None:
        matchers.append(RanMatcher(rule.ran_longer_than_s, shorter=False))
    if rule.exit_codes is not None:
        matchers.append(ExitCodeMatcher(selector, rule.exit_codes))
    if rule.conditions is not None:
        matchers.append(ConditionMatcher(selector, rule.conditions))
    if rule.signals is not None:
        matchers.append(SignalMatcher(selector, rule.signals))
    if pattern is not None:
        matchers.append(MessageMatcher(selector, pattern))
    if rule.log is not None:
        matchers.append(LogMatcher(Pattern(rule.log)))
    if rule.container_name is not None:
        matchers.append(ContainerMatcher(selector))
    return tuple(matchers)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in sorted(values)) or "nothing"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "...")
