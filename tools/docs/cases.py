"""Writes what the case runner understands of Fluster's cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.cases.fluster import WHOLE
from tools.cases.fluster_page import told
from tools.cases.fluster_phrases import PHRASES
from tools.docs.source import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.cases.fluster_table import Phrase, Whole


def given() -> str:
    """Print what a job of a case can be given."""
    says: dict[str, list[str]] = {}
    for name, what in told().items():
        says.setdefault(what, []).append(f"`{name}`")
    return table(["Given", "Says"], [[", ".join(names), what] for what, names in says.items()])


def phrases() -> str:
    """Print what can happen to one job, one thing after another."""
    return _listed(PHRASES)


def whole() -> str:
    """Print what can be all that happens."""
    return _listed(WHOLE)


def _listed(phrases: Iterable[Phrase | Whole]) -> str:
    return table(["When", "Means"], [[f"`{one.says}`", one.means] for one in phrases])
