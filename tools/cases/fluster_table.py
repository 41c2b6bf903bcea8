"""What a phrase of Fluster's cases is: how it is written, what it means, and what is done about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.cases.fluster_story import Story
    from tools.cases.results import Case, Mismatch

Act: TypeAlias = "Callable[[Story, re.Match[str]], object]"
Checker: TypeAlias = "Callable[[Case, re.Match[str]], list[Mismatch]]"


class Phrase(Struct, frozen=True):
    """One phrase, of which there can be several in a case, one after the other."""

    says: str
    """As the page lists it: words in capitals stand for values, brackets for what may be left out."""
    means: str
    pattern: str
    act: Act


class Whole(Struct, frozen=True):
    """One phrase that is all that happens in a case, with all that it is given and expects."""

    says: str
    means: str
    pattern: str
    check: Checker
    given: frozenset[str] = frozenset()
    """It is for cases that are given one of these; without any, for all."""
    but: frozenset[str] = frozenset()
    """And for none that is given one of these."""

    def match(self, case: Case, when: str) -> re.Match[str] | None:
        """Match a case that it is for."""
        names = case["given"].keys()
        if (self.given and not self.given & names) or self.but & names:
            return None
        return re.fullmatch(self.pattern, when)
