"""Compiles and searches the patterns of policies and categories; leaves which text to search to the matchers.

RE2 everywhere: no pattern can take more than linear time, and the dialects mean RE2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

from holdfast.errors import InvalidPolicy, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_QUIET = re2.Options()
_QUIET.log_errors = False


class Pattern:
    """A compiled pattern, searched unanchored."""

    __slots__ = ("_search", "text")

    def __init__(self, text: str) -> None:
        """Compile it.

        Raises:
            InvalidPolicy: It is not RE2.
        """
        self.text = text
        try:
            self._search: Any = re2.compile(text, options=_QUIET).search
        except re2.error as error:
            raise InvalidPolicy(problems=[Problem("pattern", f"{text!r} is not RE2: {_reason(error)}")]) from None

    def found_in(self, text: str) -> bool:
        """Whether it occurs in a text; never in an empty one."""
        if not text:
            return False
        try:
            return self._search(text) is not None
        except UnicodeEncodeError:
            # A program may write any bytes; undecodable ones arrive as lone surrogates, which RE2 cannot take.
            return self._search(text.encode(errors="replace").decode()) is not None


def any_of(texts: Iterable[str]) -> Pattern | None:
    """Compile one pattern that occurs wherever any of these does; ``None`` when it would be too large."""
    try:
        return Pattern("|".join(f"(?:{text})" for text in texts))
    except InvalidPolicy:
        return None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
