"""Guesses which known word a misspelt one was meant to be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEAR = 0.6
"""Share of characters in common; with less, a guess confuses more than it helps."""


def closest(value: object, words: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, ignoring case; ``None`` when none is near."""
    by_lower = {word.lower(): word for word in words}
    matches = difflib.get_close_matches(str(value).lower(), list(by_lower), n=1, cutoff=_NEAR)
    return f"did you mean {by_lower[matches[0]]}?" if matches else None
