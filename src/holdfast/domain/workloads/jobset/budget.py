"""Counts a set's restarts while failures are judged, and says which limit is spent.

``maxRestarts`` is one budget, shared by every counted restart of the set, its replicated jobs and its jobs; rules and
replicated jobs may have limits of their own. Mutable on purpose: thousands of failures may be judged in one pass.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import LimitUse
from holdfast.domain.workloads.jobset.conditions import REACHED_MAX_RESTARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.policy.model import SetRule
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec
    from holdfast.domain.workloads.jobset.state import Child, JobSetState

MAX_RESTARTS = "maxRestarts"
_DISABLED = ("RestartsDisabled", "global max retries is 0, restarts are disabled")


class Scope(StrEnum):
    """What a restart runs again."""

    SET = "set"
    GROUP = "replicatedJob"
    JOB = "job"


class LimitReached(Exception):
    """A limit allows no further restart."""

    def __init__(self, reason: str, message: str, limits: tuple[LimitUse, ...] = ()) -> None:
        """Keep the reason and message of the set's failure, and the limits checked; the last one is spent."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.limits = limits


class Budget:
    """The counters of a set."""

    def __init__(
        self, spec: JobSetSpec, policy: FailurePolicy, state: JobSetState, now: float, *, allowed: bool
    ) -> None:
        """Start from a state; grants nothing unless restarts are allowed at all."""
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
        self._times = self._within_window(state.counted_at)

    def _within_window(self, times: tuple[float, ...]) -> list[float]:
        window = self._policy.window_s
        return [] if window is None else [at for at in times if at > self._now - window]

    @property
    def used(self) -> int:
        """How much of ``maxRestarts`` is used."""
        if self._policy.window_s is not None:
            return len(self._times)
        return self._counted - self._state.forgiven

    def rule_used(self, name: str) -> int:
        """How often a rule has restarted anything."""
        return self._rules.get(name, 0)

    def check(self, rule: SetRule | None, child: Child, *, counted: bool) -> tuple[LimitUse, ...]:
        """Check every limit on a restart.

        Raises:
            LimitReached: A limit allows no more.
        """
        if not self._allowed:
            raise LimitReached(*_DISABLED)
        limits = []
        for limit, reason, message in self._limits(rule, child, counted=counted):
            limits.append(limit)
            if limit.limit is not None and limit.used >= limit.limit:
                raise LimitReached(reason, message, tuple(limits))
        return tuple(limits)

    def _limits(self, rule: SetRule | None, child: Child, *, counted: bool) -> Iterator[tuple[LimitUse, str, str]]:
        if rule is not None and rule.limit is not None:
            use = LimitUse(f"rule {rule.name}", self.rule_used(rule.name), rule.limit)
            yield use, "ReachedRuleLimit", f"jobset failed due to reaching the limit of rule {rule.name}"
        if not counted:
            return
        group = self._spec.by_name.get(child.group)
        if group is not None and group.max_restarts is not None:
            use = LimitUse(f"replicatedJob {group.name}", self._blamed.get(group.name, 0), group.max_restarts)
            message = f"jobset failed due to reaching the limit of replicatedJob {group.name}"
            yield use, "ReachedReplicatedJobLimit", message
        yield LimitUse(MAX_RESTARTS, self.used, self._policy.max_restarts), *REACHED_MAX_RESTARTS

    def grant(self, scope: Scope, rule: str, child: Child, *, counted: bool) -> None:
        """Count one restart."""
        self._rules[rule] = self.rule_used(rule) + 1
        if scope is Scope.SET:
            self._restarts += 1
            self._restarts_counted += counted
        elif scope is Scope.GROUP:
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

    def into(self, state: JobSetState) -> JobSetState:
        """Return a state with these counters."""
        return replace(
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
