"""Suggests the known word that a misspelt one probably means."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEAR = 0.6
"""Minimum share of common characters; a guess with less confuses more than it helps."""


def closest(value: object, words: Iterable[str]) -> str | None:
    """Return ``did you mean X?`` for the closest known word, ignoring case; ``None`` if none is close."""
    by_lower = {word.lower(): word for word in words}
    matches = difflib.get_close_matches(str(value).lower(), list(by_lower), n=1, cutoff=_NEAR)
    return f"did you mean {by_lower[matches[0]]}?" if matches else None
