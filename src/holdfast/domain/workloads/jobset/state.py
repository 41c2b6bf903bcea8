"""The stored record of a job set: its state, its conditions, and the log of decisions.

Times are seconds since the epoch, UTC. Reasons and messages of conditions are upstream's, word for word. A condition is
never created with status False, and an unchanged condition keeps its time. A set that ends, is suspended or becomes
ready is no longer restarting.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.policy.model import Considered, LimitUse, SetAction
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.terms import kinds
from holdfast.domain.terms.states import JobSetPhase
from holdfast.domain.terms.workload_kinds import JOBSET
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.jobset.model import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.jobset.model import JobSetSpec


def backoff_keys(group: str, name: str) -> tuple[str, str, str]:
    """Return the keys under which a job's back-off may be stored: of its set, its replicated job and itself."""
    return "", f"group/{group}", f"job/{name}"


class SetCondition(Struct, frozen=True):
    """One condition of a set; never created with status False, only set to it."""

    type: str
    status: bool
    reason: str
    message: str
    since: float


class Terminal(StrEnum):
    """How a set has ended."""

    NONE = ""
    COMPLETED = "Completed"
    FAILED = "Failed"


class GroupStatus(Struct, frozen=True):
    """The jobs of one replicated job, counted."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


class Streak(Struct, frozen=True):
    """Uncounted restarts of the same part of a set that followed each other quickly."""

    times: int
    due: float
    """When the last restart was due."""


class JobSetState(Struct, frozen=True, kw_only=True):
    """The stored state of a set."""

    restarts: int = 0
    """Restarts of the whole set, counted or not."""
    restarts_counted: int = 0
    """Restarts of the whole set that counted against ``maxRestarts``."""
    job_restarts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Restarts of single jobs, by replicated job and index; they survive restarts of the set."""
    job_restarts_counted: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    group_restarts: Mapping[str, int] = field(default_factory=dict)
    """Restarts of whole replicated jobs."""
    group_restarts_counted: Mapping[str, int] = field(default_factory=dict)
    rule_restarts: Mapping[str, int] = field(default_factory=dict)
    """Restarts granted by each rule, counted or not."""
    blamed: Mapping[str, int] = field(default_factory=dict)
    """Counted restarts that jobs of each replicated job caused."""
    counted_at: tuple[float, ...] = ()
    """Times of the counted restarts within the policy's window."""
    forgiven: int = 0
    """Counted restarts that a healthy period has restored to the budget."""
    left_failed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Jobs that ``FailJob`` left failed, with the judged attempt."""
    terminal: Terminal = Terminal.NONE
    conditions: tuple[SetCondition, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    started_at: float | None = None
    ended_at: float | None = None
    healthy_since: float | None = None
    """When all of its jobs became ready."""
    not_before: Mapping[str, float] = field(default_factory=dict)
    """Back-off: the whole set (``""``), a replicated job or a job is not created before this; see ``backoff_keys``."""
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    """Streaks of uncounted restarts, by the same keys, without those that were healthy since."""
    in_place_previous: int | None = None
    in_place_current: int | None = None
    met: tuple[int, ...] = ()
    """Positions of the dependencies that it no longer waits for."""
    unmet: str = ""
    """Why it was suspended instead of started: a dependency that can never be met; empty once it is resumed."""

    @property
    def counted(self) -> int:
        """All counted restarts, of the set, its replicated jobs and its jobs."""
        counted = self.restarts_counted + sum(self.group_restarts_counted.values())
        for by_index in self.job_restarts_counted.values():
            counted += sum(by_index.values())
        return counted

    def restarts_of(self, group: str, index: int) -> int:
        """Return the restarts of a job without its set's: its own and its replicated job's."""
        own = self.job_restarts.get(group)
        return self.group_restarts.get(group, 0) + (own.get(index, 0) if own else 0)

    def condition(self, type_: str) -> SetCondition | None:
        """Return a condition, whether it holds or not."""
        for candidate in self.conditions:
            if candidate.type == type_:
                return candidate
        return None

    def holds(self, type_: str) -> bool:
        """Whether a condition holds."""
        condition = self.condition(type_)
        return condition is not None and condition.status

    @property
    def telling(self) -> SetCondition | None:
        """The condition that determines the phase."""
        return next((self.condition(type_) for type_ in _BY_CONDITION if self.holds(type_)), None)


_BY_CONDITION = {
    "Completed": JobSetPhase.COMPLETED,
    "Failed": JobSetPhase.FAILED,
    "Suspended": JobSetPhase.SUSPENDED,
    "RestartingJobSet": JobSetPhase.RESTARTING,
}
"""Phases by condition; the first condition that holds counts."""


class SetEvent(Struct, frozen=True):
    """An event for people to read."""

    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


class SetDecision(Struct, frozen=True, kw_only=True):
    """The decision about one failed job, and why."""

    job: str
    attempt: tuple[int, int]
    action: SetAction | None
    """The rule's action; ``None`` if there is no failure policy."""
    granted: bool
    """Whether it is carried out; a spent limit fails the set instead."""
    reason: str
    """The reason of the event or condition, word for word upstream's."""
    message: str
    rule: str | None = None
    rule_index: int | None = None
    """``None``: no rule matched, the default action applies."""
    limits: tuple[LimitUse, ...] = ()
    delay_s: float = 0.0
    considered: tuple[Considered, ...] = ()


class JobSet(Owner, frozen=True, kw_only=True):
    """One job set."""

    lenient: bool = False
    """Whether its manifest is read leniently."""
    state: JobSetState = JobSetState()

    kind = JOBSET
    info = kinds.JOB_SET
    noun = info.noun

    def phase(self, spec: JobSetSpec) -> str:
        """Return its phase."""
        state = self.state
        if self.deleting:
            return JobSetPhase.DELETING
        if state.terminal:
            return state.terminal.value
        if spec.managed_by not in {None, CONTROLLER}:
            return JobSetPhase.UNMANAGED
        if (telling := state.telling) is not None:
            return _BY_CONDITION[telling.type]
        if state.started_at is None:
            waits = JobSetPhase.WAITING if spec.waits_for(state.met) else JobSetPhase.PENDING
            return JobSetPhase.SUSPENDED if spec.suspend else waits
        return JobSetPhase.RUNNING

    def reason(self, spec: JobSetSpec) -> tuple[str, str]:
        """Return the reason of its phase, and the message."""
        state = self.state
        if state.unmet and spec.suspend and not state.terminal:
            return NEVER_SATISFIED, state.unmet
        if (telling := state.telling) is not None:
            return telling.reason, telling.message
        waits = spec.waits_for(state.met)
        return ("DependenciesNotMet", waits) if waits else ("", "")

    @property
    def ended(self) -> str:
        """How it ended; empty until then."""
        return self.state.terminal.value

    @property
    def ended_because(self) -> str:
        """Why it ended like this."""
        condition = self.state.condition(self.state.terminal.value)
        return condition.message if condition is not None else ""

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of its jobs by how they ended, and of all its restarts."""
        state = self.state
        of_jobs = (count for by_index in state.job_restarts.values() for count in by_index.values())
        return {
            "succeeded": sum(group.succeeded for group in state.groups),
            "failed": sum(group.failed for group in state.groups),
            "restarts": state.restarts + sum(state.group_restarts.values()) + sum(of_jobs),
        }

    @property
    def started_at(self) -> float | None:
        """When it started."""
        return self.state.started_at

    @property
    def outcome(self) -> str:
        """How it ended for its dependents: cancelled, if it never started because of a dependency."""
        if self.state.terminal is Terminal.COMPLETED:
            return JobState.SUCCEEDED.value
        condition = self.state.condition(self.ended)
        never = condition is not None and condition.reason == NEVER_SATISFIED
        return JobState.CANCELLED.value if never else self.ended


class SetLogEntry(Struct, frozen=True, kw_only=True):
    """One decision about a job of a set, or one event of the set."""

    set_id: str
    at: float
    what: SetDecision | SetEvent
    seq: int = 0
    """Assigned by the store, in order over all sets."""


REACHED_MAX_RESTARTS = ("ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
FAILED_JOBS = ("FailedJobs", "jobset failed due to one or more job failures")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "jobset was active longer than specified deadline")
NEVER_SATISFIED = "DependencyNeverSatisfied"
"""The reason of a set that ends or is suspended before it started; the word is Slurm's."""
MOST_NAMED = 10
"""How many failed jobs a message names."""


class Transition(Struct, frozen=True):
    """A state after a condition changed, and the resulting events."""

    state: JobSetState
    events: tuple[SetEvent, ...] = ()

    def then(self, condition: SetCondition, *, event_type: str = "Normal") -> Transition:
        """Set one more condition."""
        more = turn(self.state, condition, event_type=event_type)
        return Transition(more.state, self.events + more.events)


def turn(state: JobSetState, condition: SetCondition, *, event_type: str = "Normal") -> Transition:
    """Set a condition; a repetition updates its reason and message, keeps its time and emits no event."""
    old = state.condition(condition.type)
    if old is None:
        if not condition.status:
            return Transition(state)
        new, is_news = (*state.conditions, condition), True
    else:
        is_news = old.status is not condition.status
        if not is_news:
            condition = evolve(condition, since=old.since)
        new = tuple(condition if current is old else current for current in state.conditions)
    event = SetEvent(event_type, condition.reason, condition.message)
    return Transition(evolve(state, conditions=new), (event,) if is_news else ())


def first_failed(message: str, job: str) -> str:
    """Add the first failed job to a message, as upstream does."""
    return f"{message} (first failed job: {job})"


def left_failed(names: Sequence[str]) -> str:
    """Name the jobs that were left failed."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{FAILED_JOBS[1]} (jobs left failed: {', '.join(names[:MOST_NAMED])}{more})"


def failed(state: JobSetState, reason: str, message: str, now: float) -> Transition:
    """End a set as failed."""
    ended = evolve(state, terminal=Terminal.FAILED, ended_at=now, healthy_since=None, not_before={}, streaks={})
    turned = turn(
        ended, SetCondition("Failed", status=True, reason=reason, message=message, since=now), event_type="Warning"
    )
    return turned.then(_not_restarting("JobSetFailed", "jobset failed", now))


def completed(state: JobSetState, now: float) -> Transition:
    """End a set as complete."""
    ended = evolve(state, terminal=Terminal.COMPLETED, ended_at=now, healthy_since=None, not_before={}, streaks={})
    message = "jobset completed successfully"
    turned = turn(ended, SetCondition("Completed", status=True, reason="AllJobsCompleted", message=message, since=now))
    return turned.then(_not_restarting("JobSetCompleted", "jobset completed", now))


def restarting(state: JobSetState, reason: str, message: str, now: float) -> Transition:
    """Note that a set is restarting, and why."""
    return turn(
        state,
        SetCondition("RestartingJobSet", status=True, reason=reason, message=message, since=now),
        event_type="Warning",
    )


def jobs_ready(state: JobSetState, now: float) -> Transition:
    """Note that a restart is over."""
    return turn(state, _not_restarting("JobsReady", "all jobs are ready", now))


def suspended(state: JobSetState, now: float) -> Transition:
    """Note that a set is suspended."""
    turned = turn(
        state, SetCondition("Suspended", status=True, reason="SuspendedJobs", message="jobset is suspended", since=now)
    )
    return turned.then(_not_restarting("JobSetSuspended", "jobset suspended", now))


def resumed(state: JobSetState, now: float) -> Transition:
    """Note that a suspended set is resumed."""
    return turn(
        state, SetCondition("Suspended", status=False, reason="ResumeJobs", message="jobset is resumed", since=now)
    )


def starting(state: JobSetState, now: float, *, done: bool) -> Transition:
    """Note the progress of starting in order; the two conditions exclude each other."""
    progress = ("InOrderStartupPolicyInProgress", "in order startup policy is in progress")
    complete = ("InOrderStartupPolicyCompleted", "in order startup policy has completed")
    reason, message = complete if done else progress
    on, off = ("Completed", "InProgress") if done else ("InProgress", "Completed")
    turned = turn(state, SetCondition(f"StartupPolicy{on}", status=True, reason=reason, message=message, since=now))
    return turned.then(SetCondition(f"StartupPolicy{off}", status=False, reason=reason, message=message, since=now))


def _not_restarting(reason: str, message: str, now: float) -> SetCondition:
    return SetCondition("RestartingJobSet", status=False, reason=reason, message=message, since=now)
