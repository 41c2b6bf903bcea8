"""Decides what follows when jobs of a set have failed: fail the set, restart it or a part of it, or leave them failed.

Each failure is judged once per (job, attempt): a restart makes the failed job a previous one, and jobs left by
``FailJob`` are stored. A restart of the whole set answers all of its failures, so it counts once. ``maxRestarts`` is a
single budget, shared by all counted restarts of the set, its replicated jobs and its jobs; rules and replicated jobs
can have their own limits. Reasons and messages are upstream's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.policy.decide import delay_s
from holdfast.domain.policy.model import LimitUse, SetAction
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.rules import explained, taken
from holdfast.domain.workloads.jobset.state import (
    FAILED_JOBS,
    REACHED_MAX_RESTARTS,
    SetDecision,
    SetEvent,
    Streak,
    Transition,
    backoff_keys,
    failed,
    first_failed,
    restarting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import SetRule
    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec, RestartPace
    from holdfast.domain.workloads.jobset.rules import RuleMatch
    from holdfast.domain.workloads.jobset.state import JobSetState


MAX_RESTARTS = "maxRestarts"
_DISABLED = ("RestartsDisabled", "global max retries is 0, restarts are disabled")


class RestartScope(StrEnum):
    """What a restart covers."""

    SET = "set"
    GROUP = "replicatedJob"
    JOB = "job"


class LimitReached(Exception):
    """A limit allows no further restart."""

    def __init__(self, reason: str, message: str, limits: tuple[LimitUse, ...] = ()) -> None:
        """``limits`` are those that were checked; the last one is spent."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.limits = limits


class Budget:
    """The counters of a set."""

    def __init__(
        self, spec: JobSetSpec, policy: FailurePolicy, state: JobSetState, now: float, *, allowed: bool
    ) -> None:
        """Start from a state; without ``allowed``, no restart is granted."""
        self._allowed = allowed
        self._spec = spec
        self._policy = policy
        self._state = state
        self._now = now
        self._counted = state.counted
        self._restarts = state.restarts
        self._restarts_counted = state.restarts_counted
        self._jobs = {group: dict(counts) for group, counts in state.job_restarts.items()}
        self._jobs_counted = {group: dict(counts) for group, counts in state.job_restarts_counted.items()}
        self._groups = dict(state.group_restarts)
        self._groups_counted = dict(state.group_restarts_counted)
        self._rules = dict(state.rule_restarts)
        self._blamed = dict(state.blamed)
        self._times: list[float] = []
        if policy.window_s is not None:
            self._times += [at for at in state.counted_at if at > now - policy.window_s]

    @property
    def used(self) -> int:
        """How much of ``maxRestarts`` is used."""
        if self._policy.window_s is not None:
            return len(self._times)
        return self._counted - self._state.forgiven

    def check(self, rule: SetRule, child: Child, *, counted: bool) -> tuple[LimitUse, ...]:
        """Check every limit on a restart.

        Raises:
            LimitReached: A limit allows no more.
        """
        if not self._allowed:
            raise LimitReached(*_DISABLED)
        uses: list[tuple[LimitUse, tuple[str, str]]] = []
        if rule.limit is not None:
            message = f"jobset failed due to reaching the limit of rule {rule.name}"
            limit = LimitUse(f"rule {rule.name}", self._rules.get(rule.name, 0), rule.limit)
            uses.append((limit, ("ReachedRuleLimit", message)))
        group = self._spec.by_name.get(child.group)
        if counted and group is not None and group.max_restarts is not None:
            message = f"jobset failed due to reaching the limit of replicatedJob {group.name}"
            limit = LimitUse(f"replicatedJob {group.name}", self._blamed.get(group.name, 0), group.max_restarts)
            uses.append((limit, ("ReachedReplicatedJobLimit", message)))
        if counted:
            uses.append((LimitUse(MAX_RESTARTS, self.used, self._policy.max_restarts), REACHED_MAX_RESTARTS))
        limits: tuple[LimitUse, ...] = ()
        for limit, reached in uses:
            limits += (limit,)
            if limit.limit is not None and limit.used >= limit.limit:
                raise LimitReached(*reached, limits)
        return limits

    def grant(self, scope: RestartScope, rule: str, child: Child, *, counted: bool) -> int:
        """Count one restart; returns how many restarts its rule has granted."""
        times = self._rules[rule] = self._rules.get(rule, 0) + 1
        if scope is RestartScope.SET:
            self._restarts += 1
            self._restarts_counted += counted
        elif scope is RestartScope.GROUP:
            self._groups[child.group] = self._groups.get(child.group, 0) + 1
            self._groups_counted[child.group] = self._groups_counted.get(child.group, 0) + counted
        else:
            own = self._jobs.setdefault(child.group, {})
            own[child.index] = own.get(child.index, 0) + 1
            if counted:
                mine = self._jobs_counted.setdefault(child.group, {})
                mine[child.index] = mine.get(child.index, 0) + 1
        if counted:
            self._counted += 1
            self._blamed[child.group] = self._blamed.get(child.group, 0) + 1
            if self._policy.window_s is not None:
                self._times.append(self._now)
        return times

    def into(self, state: JobSetState) -> JobSetState:
        """Return a state with these counters."""
        return evolve(
            state,
            restarts=self._restarts,
            restarts_counted=self._restarts_counted,
            job_restarts=self._jobs,
            job_restarts_counted=self._jobs_counted,
            group_restarts=self._groups,
            group_restarts_counted=self._groups_counted,
            rule_restarts=self._rules,
            blamed=self._blamed,
            counted_at=tuple(self._times),
        )


_RESTARTS: dict[SetAction, tuple[RestartScope, bool]] = {
    SetAction.RESTART_JOB_SET: (RestartScope.SET, True),
    SetAction.RESTART_JOB_SET_UNCOUNTED: (RestartScope.SET, False),
    SetAction.RESTART_GROUP: (RestartScope.GROUP, True),
    SetAction.RESTART_GROUP_UNCOUNTED: (RestartScope.GROUP, False),
    SetAction.RESTART_JOB: (RestartScope.JOB, True),
    SetAction.RESTART_JOB_UNCOUNTED: (RestartScope.JOB, False),
}
"""The scope of each restart, and whether it counts against ``maxRestarts``."""


class Judged(Struct, frozen=True):
    """The result of judging failures."""

    state: JobSetState
    decisions: tuple[SetDecision, ...]
    events: tuple[SetEvent, ...]


def judge(
    spec: JobSetSpec,
    state: JobSetState,
    failures: Sequence[Child],
    now: float,
    *,
    restarts_allowed: bool = True,
) -> Judged:
    """Judge failed jobs, none of which has been judged before.

    Args:
        spec: The set's specification.
        state: The set's state before.
        failures: The failed jobs of the current attempts, at least one.
        now: The time.
        restarts_allowed: Whether the operator allows any restart (``globalMaxRetries`` is not 0).
    """
    if spec.failure is None:
        return _without_policy(state, failures, now)
    return _Judging(spec, spec.failure, state, now, restarts_allowed=restarts_allowed).run(failures)


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
        self, spec: JobSetSpec, policy: FailurePolicy, state: JobSetState, now: float, *, restarts_allowed: bool
    ) -> None:
        self._spec, self._policy, self._state, self._now = spec, policy, state, now
        self._budget = Budget(spec, policy, state, now, allowed=restarts_allowed)
        self._left_failed = dict(state.left_failed)
        self._not_before = dict(state.not_before)
        self._streaks = dict(state.streaks)
        self._restarted_groups: set[str] = set()
        self._decisions: list[SetDecision] = []
        self._events: list[SetEvent] = []
        self._over: Transition | None = None
        """Set once the set restarts or has ended: no further failure is judged."""

    def run(self, failures: Sequence[Child]) -> Judged:
        """Judge failures, except those that a restart of their replicated job has just answered."""
        for rule_match in taken(self._policy, failures):
            if rule_match.child.group in self._restarted_groups:
                continue
            reason = f"{rule_match.rule.action}FailurePolicyAction"
            message = first_failed(f"applying {rule_match.rule.action} failure policy action", rule_match.child.name)
            match rule_match.rule.action:
                case SetAction.FAIL_JOB_SET:
                    self._decide(rule_match, reason, message)
                    self._over = failed(self._state, reason, message, self._now)
                case SetAction.FAIL_JOB:
                    self._left_failed[rule_match.child.name] = rule_match.child.attempt
                    self._decide(rule_match, reason, message)
                    self._events.append(SetEvent("Warning", reason, message))
                case (
                    SetAction.RESTART_JOB_SET
                    | SetAction.RESTART_JOB_SET_UNCOUNTED
                    | SetAction.RESTART_GROUP
                    | SetAction.RESTART_GROUP_UNCOUNTED
                    | SetAction.RESTART_JOB
                    | SetAction.RESTART_JOB_UNCOUNTED
                ):
                    self._restart(rule_match, reason, message)
                case _:
                    assert_never(rule_match.rule.action)
            if self._over is not None:
                break
        turned = self._over or Transition(self._state)
        state = self._budget.into(turned.state)
        if not state.terminal:
            state = evolve(
                state,
                left_failed=self._left_failed,
                not_before=self._not_before,
                streaks=self._open_streaks(),
                healthy_since=None,
            )
        return Judged(state, tuple(self._decisions), (*self._events, *turned.events))

    def _restart(self, rule_match: RuleMatch, reason: str, message: str) -> None:
        rule, child = rule_match.rule, rule_match.child
        scope, counted = _RESTARTS[rule.action]
        try:
            limits = self._budget.check(rule, child, counted=counted)
        except LimitReached as spent:
            message = first_failed(spent.message, child.name)
            self._decide(rule_match, spent.reason, message, granted=False, limits=spent.limits)
            self._over = failed(self._state, spent.reason, message, self._now)
            return
        times = self._budget.grant(scope, rule.name, child, counted=counted)
        self._decide(rule_match, reason, message, limits=limits, delay_s=self._delay(rule_match, times))
        self._events.append(SetEvent("Warning", reason, message))
        if scope is RestartScope.SET:
            self._left_failed.clear()
            reason = "DefaultFailurePolicy" if rule_match.index is None else f"FailurePolicy_{rule.name}"
            self._over = restarting(self._state, reason, message, self._now)
        elif scope is RestartScope.GROUP:
            self._restarted_groups.add(child.group)
            self._forget(child.group)
        else:
            self._left_failed.pop(child.name, None)

    def _forget(self, group: str) -> None:
        """Forget the jobs of a replicated job that were left failed, because they restart."""
        prefix = f"{self._spec.name}-{group}-"
        mine = [name for name in self._left_failed if name.startswith(prefix) and name[len(prefix) :].isdecimal()]
        for name in mine:
            del self._left_failed[name]

    def _delay(self, rule_match: RuleMatch, times: int) -> float:
        """Begin the back-off of a restart; uncounted restarts get one even if none is set."""
        scope, counted = _RESTARTS[rule_match.rule.action]
        whole, group, job = backoff_keys(rule_match.child.group, rule_match.child.name)
        key = {RestartScope.SET: whole, RestartScope.GROUP: group, RestartScope.JOB: job}[scope]
        backoff = rule_match.rule.backoff or self._policy.backoff
        if backoff is not None:
            delay = delay_s(backoff, times, seed=rule_match.child.name)
        elif counted or self._policy.pace is None:
            return 0.0
        else:
            delay = self._pace_delay(key, rule_match.child, self._policy.pace)
        if delay:
            self._not_before[key] = max(self._not_before.get(key, 0.0), self._now + delay)
        return delay

    def _pace_delay(self, key: str, child: Child, pace: RestartPace) -> float:
        """Count a restart in its streak, and return its delay."""
        before = self._streaks.get(key, Streak(0, self._now))
        lasted = child.failed_at - before.due
        times = 1 if lasted >= pace.reset_after_s else before.times + (lasted <= pace.within_s)
        late = times - pace.at_once
        delay = delay_s(pace.backoff, late, seed=child.name) if late > 0 and lasted <= pace.within_s else 0.0
        self._streaks[key] = Streak(times, self._now + delay)
        return delay

    def _open_streaks(self) -> dict[str, Streak]:
        """Return the streaks that have not ended yet."""
        pace = self._policy.pace
        if pace is None:
            return {}
        oldest = self._now - pace.reset_after_s
        return {key: streak for key, streak in self._streaks.items() if streak.due > oldest}

    def _decide(
        self,
        rule_match: RuleMatch,
        reason: str,
        message: str,
        *,
        granted: bool = True,
        limits: tuple[LimitUse, ...] = (),
        delay_s: float = 0.0,
    ) -> None:
        decision = SetDecision(
            job=rule_match.child.name,
            attempt=rule_match.child.attempt,
            action=rule_match.rule.action,
            granted=granted,
            reason=reason,
            message=message,
            rule=None if rule_match.index is None else rule_match.rule.name,
            rule_index=rule_match.index,
            limits=limits,
            delay_s=delay_s,
            considered=explained(self._policy, rule_match),
        )
        self._decisions.append(decision)
