"""Decides which rule of a set's failure policy takes which failed job, and whether its limits allow a restart.

Rule-major: rules are tried in order over all failed jobs; within a rule the earliest failure comes first, ties by
global index. ``maxRestarts`` is one budget, shared by every counted restart of the set, its replicated jobs and its
jobs; rules and replicated jobs can have their own limits.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import considered, matches
from holdfast.domain.policy.model import Considered, LimitUse, SetAction, SetRule
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.state import REACHED_MAX_RESTARTS
from holdfast.errors import InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.policy.matchers import Matcher
    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec
    from holdfast.domain.workloads.jobset.state import JobSetState


DEFAULT_RULE = SetRule(SetAction.RESTART_JOB_SET, "default")
"""What happens when no rule matches."""
_LONGEST_QUOTE = 120


class RuleMatch(Struct, frozen=True):
    """A failed job and the rule that takes it; one without an index is ``DEFAULT_RULE``."""

    child: Child
    index: int | None
    rule: SetRule


class _Reason(Struct, frozen=True):
    wanted: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.reason in self.wanted

    def because(self, child: Child, /) -> str:
        word = child.reason or "(none)"
        return f"failure reason {word} is {'' if self.holds(child) else 'not '}one of {', '.join(sorted(self.wanted))}"


class _Message(Struct, frozen=True):
    patterns: tuple[Pattern, ...]
    texts: tuple[str, ...]

    def holds(self, child: Child, /) -> bool:
        return any(pattern.found_in(child.message) for pattern in self.patterns)

    def because(self, child: Child, /) -> str:
        message = repr(child.message[:_LONGEST_QUOTE])
        for pattern in self.patterns:
            if pattern.found_in(child.message):
                return f"failure message {message} matches {pattern.text!r}"
        return f"failure message {message} matches none of {', '.join(map(repr, self.texts))}"


class _Target(Struct, frozen=True):
    wanted: frozenset[str]

    def holds(self, child: Child, /) -> bool:
        return child.group in self.wanted

    def because(self, child: Child, /) -> str:
        names = ", ".join(sorted(self.wanted))
        return f"replicatedJob {child.group or '(none)'} is {'' if self.holds(child) else 'not '}one of {names}"


class _InSet(Struct, frozen=True):
    """The job belongs to a replicated job; only the default action takes one that does not."""

    def holds(self, child: Child, /) -> bool:
        return bool(child.group)

    def because(self, child: Child, /) -> str:
        return "the rule matches every failure" if child.group else "the job belongs to no replicatedJob"


@lru_cache(maxsize=2048)
def _matchers(rule: SetRule) -> tuple[Matcher[Child], ...]:
    """Return the matchers of a rule, cheapest first."""
    found: list[Matcher[Child]] = []
    if rule.replicated_jobs:
        found.append(_Target(rule.replicated_jobs))
    if rule.reasons:
        found.append(_Reason(rule.reasons))
    if rule.messages:
        found.append(_Message(_patterns(rule.messages), rule.messages))
    return tuple(found) or (_InSet(),)


def _patterns(texts: tuple[str, ...]) -> tuple[Pattern, ...]:
    """Compile patterns; one that is not RE2, which only lenient readers accept, never matches."""
    found = []
    for text in texts:
        try:
            found.append(Pattern(text))
        except InvalidPolicy:
            continue
    return tuple(found)


def taken(policy: FailurePolicy, failed: Sequence[Child]) -> Iterator[RuleMatch]:
    """Yield every failed job with the rule that takes it, in the order of judging."""
    left = sorted(failed, key=attrgetter("failed_at", "global_index", "name"))
    for index, rule in enumerate(policy.rules):
        matchers, passed = _matchers(rule), []
        for child in left:
            if child.group and matches(matchers, child):
                yield RuleMatch(child, index, rule)
            else:
                passed.append(child)
        left = passed
    for child in left:
        yield RuleMatch(child, None, DEFAULT_RULE)


def explained(policy: FailurePolicy, taken: RuleMatch) -> tuple[Considered, ...]:
    """List every rule tried on a failed job, up to the one that took it."""
    last = len(policy.rules) if taken.index is None else taken.index + 1
    tried: tuple[Considered, ...] = ()
    for rule in policy.rules[:last]:
        tried += (considered("failurePolicy", rule.name, _matchers(rule), taken.child),)
    return tried


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
        found: list[tuple[LimitUse, tuple[str, str]]] = []
        if rule.limit is not None:
            message = f"jobset failed due to reaching the limit of rule {rule.name}"
            limit = LimitUse(f"rule {rule.name}", self._rules.get(rule.name, 0), rule.limit)
            found.append((limit, ("ReachedRuleLimit", message)))
        group = self._spec.by_name.get(child.group)
        if counted and group is not None and group.max_restarts is not None:
            message = f"jobset failed due to reaching the limit of replicatedJob {group.name}"
            limit = LimitUse(f"replicatedJob {group.name}", self._blamed.get(group.name, 0), group.max_restarts)
            found.append((limit, ("ReachedReplicatedJobLimit", message)))
        if counted:
            found.append((LimitUse(MAX_RESTARTS, self.used, self._policy.max_restarts), REACHED_MAX_RESTARTS))
        limits: tuple[LimitUse, ...] = ()
        for limit, reached in found:
            limits += (limit,)
            if limit.limit is not None and limit.used >= limit.limit:
                raise LimitReached(*reached, limits)
        return limits

    def grant(self, scope: RestartScope, rule: str, child: Child, *, counted: bool) -> int:
        """Count one restart; return how often its rule has restarted anything."""
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
