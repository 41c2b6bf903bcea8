"""Turns decisions into wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.units import format_memory
from holdfast.wire.base import optional_timestamp
from holdfast.wire.decisions import ConsideredView, DecisionEntry, DecisionView, LimitView

if TYPE_CHECKING:
    from holdfast.domain.policy.model import Decision


def decision_view(decision: Decision, *, retry_at: float | None) -> DecisionView:
    """Show a decision; ``retry_at`` is when the retry it granted is due."""
    return DecisionView(**_fields(decision, retry_at))


def decision_entry(decision: Decision, *, attempt: int, retry_at: float | None) -> DecisionEntry:
    """Show a decision as one of a job's decisions."""
    return DecisionEntry(attempt=attempt, **_fields(decision, retry_at))


def _fields(decision: Decision, retry_at: float | None) -> dict[str, Any]:
    return {
        "action": str(decision.action),
        "code": str(decision.code),
        "policy": decision.policy,
        "rule": decision.rule,
        "policy_revision": decision.policy_revision,
        "reason": decision.reason,
        "delay_s": decision.delay_s,
        "delay_because": decision.delay_because,
        "retry_at": optional_timestamp(retry_at) if decision.runs_again else None,
        "avoid_node": decision.avoid_node,
        "memory": None if decision.memory is None else format_memory(decision.memory),
        "limits": [LimitView(name=use.name, used=use.used, limit=use.limit) for use in decision.limits],
        "considered": [
            ConsideredView(policy=one.policy, rule=one.rule, matched=one.matched, because=one.because)
            for one in decision.considered
        ],
    }
