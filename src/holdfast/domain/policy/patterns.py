"""Compiles and searches the patterns of policies and categories.

RE2 everywhere: the dialects specify it, and no pattern can take more than linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

from holdfast.errors import InvalidPolicy, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_QUIET = re2.Options()
_QUIET.log_errors = False


class Pattern:
    """A compiled pattern, searched unanchored."""

    __slots__ = ("_search", "text")

    def __init__(self, text: str) -> None:
        """Compile a pattern.

        Raises:
            InvalidPolicy: It is not RE2.
        """
        self.text = text
        try:
            self._search: Any = re2.compile(text, options=_QUIET).search
        except re2.error as error:
            raise InvalidPolicy(problems=[Problem("pattern", f"{text!r} is not RE2: {_reason(error)}")]) from None

    def found_in(self, text: str) -> bool:
        """Whether the pattern occurs in a text; never in an empty one."""
        return bool(text) and _tolerantly(self._search, text) is not None

    def place_in(self, text: bytes) -> int | None:
        """Return the offset of its first occurrence in UTF-8 text."""
        match = self._search(text)
        return None if match is None else int(match.start())


class PatternSet:
    """Patterns searched for together, in about the time of one."""

    __slots__ = ("_any", "_which")

    def __init__(self, texts: Sequence[str]) -> None:
        """Compile patterns; if they are too many or too large, they are searched one by one."""
        self._any: Pattern | None = None
        self._which: Any = None
        together = re2.Set.SearchSet(_QUIET)
        try:
            for text in texts:
                together.Add(text)
            together.Compile()
            self._any = Pattern("|".join(f"(?:{text})" for text in texts))
        except (re2.error, InvalidPolicy):
            return
        self._which = together.Match

    def matching(self, text: str) -> Sequence[int] | None:
        """Return the indexes of those that occur in a text; ``None`` if each must be searched by itself."""
        if not text:
            return ()
        if self._any is None:
            return None
        if not self._any.found_in(text):
            return ()
        # RE2's set also says "none" when it runs out of memory; the search above has just found some.
        return _tolerantly(self._which, text) or None


def _tolerantly(search: Callable[[str], Any], text: str) -> Any:  # noqa: ANN401 - re2 has no types
    try:
        return search(text)
    except UnicodeEncodeError:
        # A program may write any bytes; undecodable ones arrive as lone surrogates, which RE2 cannot take.
        return search(text.encode(errors="replace").decode())


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
