"""Reads and writes the limits of handlers, global and per queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.lifecycle import ATTEMPTS, SCHEDULE
from holdfast.domain.suggestion import closest

if TYPE_CHECKING:
    from holdfast.dialects.reading import Fields
    from holdfast.domain.lifecycle.judge import HandlerLimits

SHORTEST_S, LONGEST_S = 0.001, 30 * 86_400.0
MOST_RETRIES = 1_000_000
FIELD = "handlerLimits"
TIMED = frozenset(row.name for row in ATTEMPTS.handlers if row.timeout_s is not None) | frozenset(
    row.name for row in ATTEMPTS.promotions if row.timeout_s is not None
)
"""Those whose timeout can be set: the table is its only source."""
COUNTED = frozenset(row.name for row in ATTEMPTS.handlers if row.max_retries is not None)
"""Those whose retries can be set."""


def read_handler_limits(fields: Fields) -> HandlerLimits:
    """Read ``handlerLimits``; omitted limits are inherited, and ``maxRetries: null`` is no limit."""
    part = fields.nested(FIELD)
    limits: dict[str, dict[str, float | None]] = {}
    if part is None:
        return limits
    for name in part.value:
        if name not in TIMED | COUNTED:
            allowed = sorted(TIMED | COUNTED)
            part.problem(str(name), "has no limits to set", allowed=allowed, hint=closest(str(name), allowed))
            part.raw(name)
            continue
        found = _read_one(part, name)
        if found:
            limits[name] = found
    return limits


def _read_one(part: Fields, name: str) -> dict[str, float | None]:
    row = part.nested(name)
    if row is None:
        return {}
    found: dict[str, float | None] = {}
    timeout_s = row.duration("timeout", low=SHORTEST_S, high=LONGEST_S)
    if name not in TIMED and "timeout" in row.value:
        hint = "a job's schedulingTimeout is" if name == SCHEDULE.name else None
        row.problem("timeout", f"is not {name}'s to set", hint=hint)
    elif timeout_s is not None:
        found["timeout_s"] = timeout_s
    retries = row.integer("maxRetries", low=0, high=MOST_RETRIES)
    if name not in COUNTED and "maxRetries" in row.value:
        row.problem("maxRetries", f"is not {name}'s to set")
    elif retries is not None or row.value.get("maxRetries", 0) is None:
        found["max_retries"] = retries
    row.finish()
    return found


def write_handler_limits(limits: HandlerLimits) -> dict[str, Any]:
    """Write limits; they read back equal."""
    names = {"timeout_s": "timeout", "max_retries": "maxRetries"}
    return {name: {names[key]: value for key, value in each.items()} for name, each in limits.items()}
