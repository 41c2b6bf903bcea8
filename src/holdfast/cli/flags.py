"""Reads the values of flags and collects everything wrong with them, to report it all at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.units import parse_duration
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


class Flags:
    """A reader that remembers each problem and continues, so that all are reported at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def wrong(self, flag: str, message: str, *, allowed: Sequence[str] = (), hint: str | None = None) -> None:
        """Note a problem."""
        self.problems.append(Problem(flag, message, allowed=tuple(allowed), hint=hint))

    def finish(self) -> None:
        """Raise all problems at once, if there are any.

        Raises:
            InvalidRequest: A flag is wrong; carries one problem for each.
        """
        if self.problems:
            msg = "These flags are not valid." if len(self.problems) > 1 else "A flag is not valid."
            raise InvalidRequest(msg, problems=self.problems)

    def parsed(self, flag: str, text: str | None, parse: Callable[[object], T]) -> T | None:
        """Read a value with a parser that raises ``ValueError``; ``None`` when absent or wrong."""
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.wrong(flag, str(error))
            return None

    def duration(self, flag: str, text: str | None) -> float | None:
        """Read a duration in seconds."""
        return self.parsed(flag, text, parse_duration)

    def integer(self, flag: str, text: str | None, *, low: int = 0, high: int | None = None) -> int | None:
        """Read a whole number within bounds."""
        if text is None:
            return None
        bounds = f"{low} to {high}" if high is not None else f"{low} or more"
        digits = text.strip().removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() else None
        if value is None or value < low or (high is not None and value > high):
            self.wrong(
                flag, f"{text!r} is {'not a whole number' if value is None else 'out of range'}", allowed=(bounds,)
            )
            return None
        return value

    def integers(self, flag: str, texts: Sequence[str], *, low: int, high: int) -> list[int]:
        """Read whole numbers, comma-separated, repeated, or both; in order, without duplicates."""
        pieces = [piece.strip() for text in texts for piece in text.split(",")]
        numbers = [self.integer(flag, piece, low=low, high=high) for piece in pieces]
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def number(self, flag: str, text: str | None, *, low: float, high: float = math.inf) -> float | None:
        """Read a finite number within bounds."""
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high or math.isinf(value):
            self.wrong(
                flag,
                f"{text!r} is {'not a number' if math.isnan(value) else 'out of range'}",
                allowed=(f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}",),
            )
            return None
        return value

    def choice(self, flag: str, text: str, allowed: Sequence[str]) -> str:
        """Read one of a few words, in any case; returns the first when wrong."""
        for word in allowed:
            if word.lower() == text.strip().lower():
                return word
        self.wrong(flag, f"{text!r} is unknown", allowed=allowed)
        return allowed[0]

    def pairs(self, flag: str, texts: Sequence[str], *, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
        """Read ``KEY=VALUE`` pairs; with ``defaults``, a bare ``KEY`` takes its value from there."""
        read: dict[str, str] = {}
        for text in texts:
            key, equals, value = text.partition("=")
            if not key:
                self.wrong(flag, f"{text!r} has no name before the '='", hint=f"write {flag} NAME=VALUE")
            elif equals:
                read[key] = value
            elif defaults is None:
                self.wrong(flag, f"{text!r} has no value", hint=f"write {flag} {key}=VALUE")
            elif key in defaults:
                read[key] = defaults[key]
            else:
                self.wrong(flag, f"{key!r} is not set here", hint=f"write {flag} {key}=VALUE, or export it first")
        return read

    def names(self, texts: Sequence[str]) -> list[str]:
        """Read names, comma-separated, repeated, or both; in order, without duplicates."""
        pieces = [piece.strip() for text in texts for piece in text.split(",")]
        return list(dict.fromkeys(piece for piece in pieces if piece))
