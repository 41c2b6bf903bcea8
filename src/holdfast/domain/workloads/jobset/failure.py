"""Decides what follows when jobs of a set have failed: fail it, restart it, restart a part of it, leave them failed.

Each failure is judged once per (job, attempt): a restart makes the failed job a part of the past, and ``FailJob``
is remembered. A restart of the whole set answers all of its failures, so it counts once. Reasons and messages are
upstream's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.policy.decide import delay_s
from holdfast.domain.policy.model import Backoff, SetAction
from holdfast.domain.workloads.jobset.rules import Budget, LimitReached, Scope, explained, taken
from holdfast.domain.workloads.jobset.state import (
    FAILED_JOBS,
    Event,
    SetDecision,
    Transition,
    backoff_keys,
    failed,
    first_failed,
    restarting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec
    from holdfast.domain.workloads.jobset.rules import RuleMatch
    from holdfast.domain.workloads.jobset.state import JobSetState


UNCOUNTED_AT_ONCE = 20
"""Restarts beside ``maxRestarts`` that a rule grants at once, where nobody asks for a back-off."""
UNCOUNTED_BACKOFF = Backoff(initial_s=1.0, max_s=300.0, multiplier=2.0)
"""Before the further ones: a program that cannot start would otherwise be restarted hundreds of times a second."""
_RESTARTS: dict[SetAction, tuple[Scope, bool]] = {
    SetAction.RESTART_JOB_SET: (Scope.SET, True),
    SetAction.RESTART_JOB_SET_UNCOUNTED: (Scope.SET, False),
    SetAction.RESTART_GROUP: (Scope.GROUP, True),
    SetAction.RESTART_GROUP_UNCOUNTED: (Scope.GROUP, False),
    SetAction.RESTART_JOB: (Scope.JOB, True),
    SetAction.RESTART_JOB_UNCOUNTED: (Scope.JOB, False),
}
"""What each restart restarts, and whether it uses up ``maxRestarts``."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of judging."""

    state: JobSetState
    decisions: tuple[SetDecision, ...]
    events: tuple[Event, ...]


def judge(
    spec: JobSetSpec,
    state: JobSetState,
    failures: Sequence[Child],
    now: float,
    *,
    restarts_allowed: bool = True,
    explain: bool = False,
) -> Judged:
    """Judge failed jobs, none of which has been judged before.

    Args:
        spec: What the set asks for.
        state: Before.
        failures: The failed jobs of the current attempts, at least one.
        now: The time.
        restarts_allowed: Whether the operator allows any restart (``globalMaxRetries`` is not 0).
        explain: Also say which rules were tried and why each did or did not match.
    """
    if spec.failure is None:
        return _without_policy(state, failures, now)
    judging = _Judging(spec, spec.failure, state, now, restarts_allowed=restarts_allowed, explain=explain)
    for one in taken(spec.failure, failures):
        judging.take(one)
        if judging.over:
            break
    return judging.result()


def _without_policy(state: JobSetState, failures: Sequence[Child], now: float) -> Judged:
    first = min(failures, key=lambda child: (child.failed_at, child.global_index))
    message = first_failed(FAILED_JOBS[1], first.name)
    turned = failed(state, FAILED_JOBS[0], message, now)
    decision = SetDecision(
        job=first.name, attempt=first.attempt, action=None, granted=True, reason=FAILED_JOBS[0], message=message
    )
    return Judged(turned.state, (decision,), turned.events)


class _Judging:
    """Judges failures one after another against the same counters."""

    def __init__(
        self,
        spec: JobSetSpec,
        policy: FailurePolicy,
        state: JobSetState,
        now: float,
        *,
        restarts_allowed: bool,
        explain: bool,
    ) -> None:
        self._spec, self._policy, self._now = spec, policy, now
        self._explain = explain
        self._turned = Transition(state)
        self._budget = Budget(spec, policy, state, now, allowed=restarts_allowed)
        self._left_failed = dict(state.left_failed)
        self._not_before = dict(state.not_before)
        self._restarted_groups: set[str] = set()
        self._decisions: list[SetDecision] = []
        self._events: list[Event] = []
        self.over = False
        """Nothing further can be judged: the set restarts or has ended."""

    def take(self, one: RuleMatch) -> None:
        """Judge one failure, unless a restart of its replicated job has just answered it."""
        if one.child.group in self._restarted_groups:
            return
        match one.action:
            case SetAction.FAIL_JOB_SET:
                self._fail(one, *_applied(one))
            case SetAction.FAIL_JOB:
                self._left_failed[one.child.name] = one.child.attempt
                self._note(one, *_applied(one))
            case (
                SetAction.RESTART_JOB_SET
                | SetAction.RESTART_JOB_SET_UNCOUNTED
                | SetAction.RESTART_GROUP
                | SetAction.RESTART_GROUP_UNCOUNTED
                | SetAction.RESTART_JOB
                | SetAction.RESTART_JOB_UNCOUNTED
            ):
                self._restart(one)
            case _:
                assert_never(one.action)

    def _restart(self, one: RuleMatch) -> None:
        scope, counted = _RESTARTS[one.action]
        try:
            limits = self._budget.check(one.rule, one.child, counted=counted)
        except LimitReached as spent:
            self._fail(one, spent.reason, first_failed(spent.message, one.child.name), spent=spent)
            return
        self._budget.grant(scope, one.name, one.child, counted=counted)
        reason, message = _applied(one)
        self._note(one, reason, message, replace(self._decision(one, reason, message), limits=limits), scope)
        if scope is Scope.SET:
            self._restart_set(one, message)
        elif scope is Scope.GROUP:
            self._restarted_groups.add(one.child.group)
            self._forget(one.child.group)
        else:
            self._left_failed.pop(one.child.name, None)

    def _restart_set(self, one: RuleMatch, message: str) -> None:
        self.over = True
        self._left_failed.clear()
        reason = "DefaultFailurePolicy" if one.rule is None else f"FailurePolicy_{one.rule.name}"
        self._turned = restarting(self._turned.state, reason, message, self._now)

    def _forget(self, group: str) -> None:
        """Forget which jobs of a replicated job were left failed: they restart."""
        prefix = f"{self._spec.name}-{group}-"
        mine = [name for name in self._left_failed if name.startswith(prefix) and name[len(prefix) :].isdecimal()]
        for name in mine:
            del self._left_failed[name]

    def _fail(self, one: RuleMatch, reason: str, message: str, *, spent: LimitReached | None = None) -> None:
        self.over = True
        decision = self._decision(one, reason, message)
        if spent is not None:
            decision = replace(decision, granted=False, limits=spent.limits)
        self._decisions.append(decision)
        self._turned = failed(self._turned.state, reason, message, self._now)

    def _note(
        self, one: RuleMatch, reason: str, message: str, decision: SetDecision | None = None, scope: Scope | None = None
    ) -> None:
        decision = decision or self._decision(one, reason, message)
        if scope is not None:
            decision = replace(decision, delay_s=self._delay(one, scope))
        self._decisions.append(decision)
        self._events.append(Event("Warning", reason, message))

    def _delay(self, one: RuleMatch, scope: Scope) -> float:
        """Begin the back-off of what is restarted; restarts that no limit ends get one even where none is asked for."""
        backoff = (one.rule.backoff if one.rule else None) or self._policy.backoff
        restarts = self._budget.rule_used(one.name)
        if backoff is None:
            restarts -= UNCOUNTED_AT_ONCE
            if _RESTARTS[one.action][1] or restarts <= 0:
                return 0.0
        delay = delay_s(backoff or UNCOUNTED_BACKOFF, restarts, seed=one.child.name)
        whole, group, job = backoff_keys(one.child.group, one.child.name)
        key = {Scope.SET: whole, Scope.GROUP: group, Scope.JOB: job}[scope]
        self._not_before[key] = max(self._not_before.get(key, 0.0), self._now + delay)
        return delay

    def _decision(self, one: RuleMatch, reason: str, message: str) -> SetDecision:
        return SetDecision(
            job=one.child.name,
            attempt=one.child.attempt,
            action=one.action,
            granted=True,
            reason=reason,
            message=message,
            rule=None if one.rule is None else one.rule.name,
            rule_index=one.index,
            considered=explained(self._policy, one) if self._explain else (),
        )

    def result(self) -> Judged:
        """Return the result."""
        state = self._budget.into(self._turned.state)
        if not state.terminal:
            state = replace(state, left_failed=self._left_failed, not_before=self._not_before, healthy_since=None)
        return Judged(state, tuple(self._decisions), (*self._events, *self._turned.events))


def _applied(one: RuleMatch) -> tuple[str, str]:
    """Return the reason and message of an action that is applied."""
    message = first_failed(f"applying {one.action} failure policy action", one.child.name)
    return f"{one.action}FailurePolicyAction", message
