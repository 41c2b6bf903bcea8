"""The conditions of a set and the events they make; reasons and messages are upstream's, word for word.

No condition is created with status False, and an unchanged one keeps its time. A set that ends, is suspended or has
become ready is no longer restarting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.state import Condition, Event, Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.jobset.state import JobSetState

REACHED_MAX_RESTARTS = ("ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
FAILED_JOBS = ("FailedJobs", "jobset failed due to one or more job failures")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "jobset was active longer than specified deadline")
MOST_NAMED = 10
"""How many jobs left failed a message names."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A state after a condition changed, and the events of it."""

    state: JobSetState
    events: tuple[Event, ...] = ()

    def then(self, condition: Condition, *, event_type: str = "Normal") -> Transition:
        """Set one more condition."""
        more = turn(self.state, condition, event_type=event_type)
        return Transition(more.state, self.events + more.events)


def turn(state: JobSetState, condition: Condition, *, event_type: str = "Normal") -> Transition:
    """Set a condition; a repetition updates its reason and message, keeps its time and makes no event."""
    old = state.condition(condition.type)
    if old is None:
        if not condition.status:
            return Transition(state)
        new, told = (*state.conditions, condition), True
    else:
        told = old.status is not condition.status
        if not told:
            condition = replace(condition, since=old.since)
        new = tuple(condition if one is old else one for one in state.conditions)
    event = Event(event_type, condition.reason, condition.message)
    return Transition(replace(state, conditions=new), (event,) if told else ())


def first_failed(message: str, job: str) -> str:
    """Add the job a message is about, as upstream does."""
    return f"{message} (first failed job: {job})"


def left_failed(names: Sequence[str]) -> str:
    """Name the jobs that were left failed."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{FAILED_JOBS[1]} (jobs left failed: {', '.join(names[:MOST_NAMED])}{more})"


def failed(state: JobSetState, reason: str, message: str, now: float) -> Transition:
    """End a set as failed."""
    ended = replace(state, terminal=Terminal.FAILED, ended_at=now, healthy_since=None, not_before={})
    turned = turn(
        ended, Condition("Failed", status=True, reason=reason, message=message, since=now), event_type="Warning"
    )
    return turned.then(_not_restarting("JobSetFailed", "jobset failed", now))


def completed(state: JobSetState, now: float) -> Transition:
    """End a set as complete."""
    ended = replace(state, terminal=Terminal.COMPLETED, ended_at=now, healthy_since=None, not_before={})
    message = "jobset completed successfully"
    turned = turn(ended, Condition("Completed", status=True, reason="AllJobsCompleted", message=message, since=now))
    return turned.then(_not_restarting("JobSetCompleted", "jobset completed", now))


def restarting(state: JobSetState, reason: str, message: str, now: float) -> Transition:
    """Note that a set is restarting and why."""
    return turn(
        state,
        Condition("RestartingJobSet", status=True, reason=reason, message=message, since=now),
        event_type="Warning",
    )


def jobs_ready(state: JobSetState, now: float) -> Transition:
    """Note that a restart is over."""
    return turn(state, _not_restarting("JobsReady", "all jobs are ready", now))


def suspended(state: JobSetState, now: float) -> Transition:
    """Note that a set is suspended."""
    turned = turn(
        state, Condition("Suspended", status=True, reason="SuspendedJobs", message="jobset is suspended", since=now)
    )
    return turned.then(_not_restarting("JobSetSuspended", "jobset suspended", now))


def resumed(state: JobSetState, now: float) -> Transition:
    """Note that a suspended set goes on."""
    return turn(
        state, Condition("Suspended", status=False, reason="ResumeJobs", message="jobset is resumed", since=now)
    )


def startup(state: JobSetState, now: float, *, done: bool) -> Transition:
    """Note how far starting in order has come; the two conditions exclude each other."""
    progress = ("InOrderStartupPolicyInProgress", "in order startup policy is in progress")
    complete = ("InOrderStartupPolicyCompleted", "in order startup policy has completed")
    reason, message = complete if done else progress
    on, off = ("Completed", "InProgress") if done else ("InProgress", "Completed")
    turned = turn(state, Condition(f"StartupPolicy{on}", status=True, reason=reason, message=message, since=now))
    return turned.then(Condition(f"StartupPolicy{off}", status=False, reason=reason, message=message, since=now))


def _not_restarting(reason: str, message: str, now: float) -> Condition:
    return Condition("RestartingJobSet", status=False, reason=reason, message=message, since=now)
