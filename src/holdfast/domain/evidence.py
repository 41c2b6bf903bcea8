"""Keeps the parts of a failed run's output that judge and explain it, so the output itself need not be stored."""

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
"""How many of the patterns found are kept with their line."""


class LogPatterns:
    """Patterns searched for in the output of failed runs, all of them in about the time of one."""

    __slots__ = ("_beside", "_patterns", "_set", "_texts")

    def __init__(self, texts: Iterable[str], beside: LogPatterns | None = None) -> None:
        """Compile them; ``^`` and ``$`` match at the lines' ends. What is not RE2 is left out: its policy says so.

        Args:
            texts: The patterns.
            beside: Others, compiled already, that are looked for as well.
        """
        self._beside = beside
        compiled = {text: _compiled(text) for text in texts}
        self._patterns = [pattern for pattern in compiled.values() if pattern is not None]
        self._texts = [text for text, pattern in compiled.items() if pattern is not None]
        self._set = PatternSet([pattern.text for pattern in self._patterns])

    def found_in(self, text: str) -> tuple[LogMatch, ...]:
        """Return those that occur in a text, each with the line where it occurs first."""
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
"""Nothing to look for."""


def asked_for(policies: Iterable[RetryPolicy], categories: Iterable[FailureCategory] = ()) -> list[str]:
    """List the patterns that policies and categories look for in what a run printed."""
    of_policies = (rule.log for policy in policies for rule in policy.rules)
    of_categories = (rule.log for category in categories for rule in category.rules)
    return [pattern for pattern in (*of_policies, *of_categories) if pattern is not None]


def with_evidence(outcome: RunOutcome, patterns: LogPatterns = NO_PATTERNS) -> RunOutcome:
    """Add to the facts of a run what its output says, and leave the output out.

    The line that tells is of the first message its programs left, else of what they printed. A failed container without
    a message is given the last lines of its log.

    Args:
        outcome: The facts; those of a run that succeeded are returned as they are.
        patterns: What is looked for.
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
