"""Renders decisions as wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.model import SetAction
from holdfast.domain.units import format_memory
from holdfast.domain.workloads.jobset.explain import summarize_decision
from holdfast.wire.base import optional_timestamp
from holdfast.wire.decisions import ConsideredView, DecisionView, LimitView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.job import Job
    from holdfast.domain.policy.model import Considered, Decision, LimitUse
    from holdfast.domain.workloads.jobset.state import SetDecision


def decision_view(decision: Decision, *, retry_at: float | None) -> DecisionView:
    """Render a decision; ``retry_at`` is when its retry is due."""
    return DecisionView(
        action=str(decision.action),
        code=str(decision.code),
        policy=decision.policy,
        rule=decision.rule,
        policy_revision=decision.policy_revision,
        reason=decision.reason,
        delay_s=decision.delay_s,
        delay_because=decision.delay_because,
        retry_at=optional_timestamp(retry_at) if decision.grants_retry else None,
        avoid_node=decision.avoid_node,
        avoid_devices=list(decision.avoid_devices),
        avoid_nodes=list(decision.avoid_nodes),
        memory=None if decision.memory is None else format_memory(decision.memory),
        limits=limit_views(decision.limits),
        considered=considered_views(decision.considered),
    )


def set_decision_of(decision: SetDecision, job: Job) -> DecisionView:
    """Render what a set decided as the decision on an attempt of its job, failed or replaced."""
    short = summarize_decision(decision)
    action = decision.action if decision.granted else None
    return DecisionView(
        action=str(action or SetAction.FAIL_JOB_SET),
        code=decision.reason,
        rule=decision.rule,
        reason=short if decision.job == job.name else f"job {decision.job} failed, {short}",
        delay_s=decision.delay_s,
        limits=limit_views(decision.limits),
        considered=considered_views(decision.considered),
    )


def limit_views(limits: Iterable[LimitUse]) -> list[LimitView]:
    """Render the limits that were checked."""
    return [LimitView(name=use.name, used=use.used, limit=use.limit) for use in limits]


def considered_views(rules: Iterable[Considered]) -> list[ConsideredView]:
    """Render the rules that were considered."""
    return [
        ConsideredView(policy=rule.policy, rule=rule.rule, matched=rule.matched, because=rule.because) for rule in rules
    ]
