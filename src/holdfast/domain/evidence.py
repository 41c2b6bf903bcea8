"""Keeps the parts of a failed run's output that explain it, so that the output itself need not be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import LogMatch
from holdfast.domain.output import bounded, error_line, last_lines, readable
from holdfast.domain.policy.patterns import Pattern, PatternSet
from holdfast.domain.record import evolve
from holdfast.errors import InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.domain.category import FailureCategory
    from holdfast.domain.failure import ContainerResult, RunOutcome
    from holdfast.domain.policy.model import RetryPolicy


_MOST_LINES = 50
"""How many of the patterns that were found are kept with their line."""


class LogPatterns:
    """Patterns searched for together in the output of failed runs, in about the time of one."""

    __slots__ = ("_beside", "_patterns", "_set", "_texts")

    def __init__(self, texts: Iterable[str], beside: LogPatterns | None = None) -> None:
        """Compile patterns; ``^`` and ``$`` match at the ends of lines. A pattern that is not RE2 is ignored here.

        Args:
            texts: The patterns.
            beside: Further patterns, already compiled.
        """
        self._beside = beside
        compiled = {text: _compiled(text) for text in texts}
        self._patterns = [pattern for pattern in compiled.values() if pattern is not None]
        self._texts = [text for text, pattern in compiled.items() if pattern is not None]
        self._set = PatternSet([pattern.text for pattern in self._patterns])

    def found_in(self, text: str) -> tuple[LogMatch, ...]:
        """Return the patterns that occur in a text, each with the line of its first occurrence."""
        others = () if self._beside is None else self._beside.found_in(text)
        if not self._patterns or not text:
            return others
        matching = self._set.matching(text)
        among = range(len(self._patterns)) if matching is None else sorted(matching)
        return (*self._matches(text.encode(), among), *others)

    def _matches(self, text: bytes, among: Iterable[int]) -> Iterator[LogMatch]:
        for count, index in enumerate(among):
            place = self._patterns[index].place_in(text)
            if place is not None:
                begin, end = text.rfind(b"\n", 0, place) + 1, text.find(b"\n", place)
                line = text[begin : len(text) if end < 0 else end]
                excerpt = bounded(line.decode("utf-8", "replace")) if count < _MOST_LINES else ""
                yield LogMatch(self._texts[index], excerpt)


def _compiled(text: str) -> Pattern | None:
    try:
        return Pattern(f"(?m){text}")
    except InvalidPolicy:
        return None


NO_PATTERNS = LogPatterns(())


def log_patterns_of(policies: Iterable[RetryPolicy], categories: Iterable[FailureCategory] = ()) -> list[str]:
    """List the patterns that policies and categories search in the output of runs."""
    of_policies = (rule.log for policy in policies for rule in policy.rules)
    of_categories = (rule.log for category in categories for rule in category.rules)
    return [pattern for pattern in (*of_policies, *of_categories) if pattern is not None]


def with_evidence(outcome: RunOutcome, patterns: LogPatterns = NO_PATTERNS) -> RunOutcome:
    """Add to the facts of a run the evidence from its output, and drop the output.

    The error line comes from the first termination message, else from the output. A failed container without a message
    gets the last lines of its log as one.

    Args:
        outcome: The facts; those of a run that succeeded are returned without the output.
        patterns: The patterns to search for.
    """
    if outcome.succeeded:
        return evolve(outcome, log="") if outcome.log else outcome
    message = ""
    tails: list[str] = []
    containers: list[ContainerResult] = []
    for container in outcome.containers:
        if not container.exit_code:
            containers.append(container)
            continue
        message = message or container.message.strip()
        tails += container.log_tail
        containers.append(_with_message(container, outcome.log_tail))
    printed = outcome.log or "\n".join(outcome.log_tail or tails)
    if not printed and not message:
        return evolve(outcome, containers=tuple(containers))
    printed = readable(printed)
    return evolve(
        outcome,
        containers=tuple(containers),
        log="",
        log_matches=patterns.found_in(printed),
        error_line=error_line(message) or error_line(printed),
    )


def _with_message(container: ContainerResult, log_tail: tuple[str, ...]) -> ContainerResult:
    lines = container.log_tail or log_tail
    if container.message or not lines:
        return container
    return evolve(container, message=last_lines(lines), message_from_log=True)
