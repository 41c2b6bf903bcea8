"""Checks Backend.AI's lifecycle cases, whose prose is regular, against the tables and the coordinator's rules.

A session is an attempt here and a kernel a run; handler names are translated, statuses are the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.cases import backendai_coordinator, backendai_handlers, backendai_promotions
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.cases.results import Case, Mismatch

_PARTS: dict[str, Callable[[Case], list[Mismatch]]] = {
    "SB": backendai_handlers.check,
    "SP": backendai_promotions.check,
    "SC": backendai_coordinator.check,
}
_GROUP = re.compile(r"([A-Z]{2})-")


def check(case: Case) -> list[Mismatch]:
    """Check one case of the session lifecycle; the other groups come with Backend.AI's front door."""
    group = _GROUP.match(str(case["id"]))
    checker = _PARTS.get(group[1]) if group else None
    if checker is None:
        msg = "needs Backend.AI's front door, not built yet"
        raise Skip(msg)
    return checker(case)
