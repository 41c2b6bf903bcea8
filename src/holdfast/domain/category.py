"""Failure categories: operator-defined names for kinds of failures.

The rules are upstream Armada's ``errorCategories``, plus the last log lines.
"""

from __future__ import annotations

from holdfast.domain.policy.model import Action, ExitCodes  # noqa: TC001 - the codec of what is stored looks them up
from holdfast.domain.record import Struct


class CategoryRule(Struct, frozen=True):
    """One rule of a category; every matcher that is set must hold, and at least one is set."""

    exit_codes: ExitCodes | None = None
    conditions: frozenset[str] | None = None
    termination_message: str | None = None
    """RE2, searched in any failed container's message."""
    log: str | None = None
    """RE2, searched in the last 64 KiB the run printed."""
    pod_error: str | None = None
    """RE2, searched in the platform's message; ignores ``container_name``."""
    pod_event: str | None = None
    """RE2, searched in the platform's events."""
    pod_event_type: str = ""
    pod_event_reason: str = ""
    container_name: str | None = None
    subcategory: str = ""
    hint: str = ""
    suggests: Action | None = None
    """The suggested action; it is only shown, and decides nothing."""


class FailureCategory(Struct, frozen=True):
    """A named kind of failure; the first category with a matching rule, in order of precedence, wins."""

    name: str
    rules: tuple[CategoryRule, ...]
    precedence: int = 0
    """Lower values are tried first; ties are broken by name."""
    hint: str = ""
    """Advice for the user, unless the rule has its own."""
    pod_action: str = "Retain"
    """Armada's ``Retain`` or ``Delete``; stored for its users, but without effect here, where run names are unique."""
