"""What a job waits for before it may start: other jobs, arrays and job sets, and what has to happen to them.

The conditions are Slurm's (``--dependency=afterok``, ``afternotok``, ``afterany``, ``after``, and ``aftercorr`` for
tasks of arrays). Unlike in Slurm, nothing waits for what can no longer happen (``DependencyNeverSatisfied``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.job import Job, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.kinds import ARRAY, JOB, JOB_SET, info_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.workloads.base import Owner

MOST_DEPENDENCIES = 1000
"""Of one job."""
_LONGEST_REASON = 200
"""Of another's reason within one of ours; a long chain of cancellations would repeat all of them otherwise."""
_NAMED = 3
"""Things a reason names before it counts the others."""


class DependencyKind:
    """What can be waited for: every kind of work, by its name."""

    JOB = JOB.name
    ARRAY = ARRAY.name
    JOB_SET = JOB_SET.name


class Condition(StrEnum):
    """What has to happen to it."""

    OK = "ok"
    """It succeeds."""
    FAILED = "failed"
    """It fails, and is not retried any more; one that is cancelled has not failed."""
    ENDED = "ended"
    """It ends, however."""
    STARTED = "started"
    """It starts for the first time; only of jobs."""


class OnUnmet(StrEnum):
    """What happens to a job when a condition can no longer be met."""

    CANCEL = "cancel"
    """It is cancelled without a run, and so are those that wait for it to succeed."""
    HOLD = "hold"
    """It is held; once it is released, it waits only for what else it waits for."""
    RUN = "run"
    """It no longer waits for that."""


class Dependency(Struct, frozen=True):
    """Something that has to happen before a job can start."""

    name: str
    """Of what is waited for; until it is submitted, whatever someone wrote."""
    condition: Condition = Condition.OK
    on_unmet: OnUnmet = OnUnmet.CANCEL
    by_index: bool = False
    """Of an array on an array: each task waits for the one of its own index."""
    target: str | None = None
    """``None`` only until it is submitted."""
    id: str = ""
    outcome: str = ""
    """How it had ended when this was submitted, if it had; that stays, even when it is forgotten."""
    reason: str = ""
    """Why it had ended so."""
    array: str = ""
    """Of a task, the id of the array that makes it, perhaps later."""

    @property
    def noun(self) -> str:
        """Say what it is, with its name."""
        return f"{info_of(self.target).noun} {self.name}"


DELETED = "Deleted"
SUCCEEDED, FAILED, CANCELLED = (state.value for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))


class AwaitedState(Struct, frozen=True):
    """The progress of something that is waited for."""

    outcome: str = ""
    """``Succeeded``, ``Failed``, ``Cancelled`` or ``Deleted``; empty until it has ended."""
    started: bool = False
    reason: str = ""
    """Why it has ended so."""
    missing: bool = False
    """There is no such thing, or not yet."""


GONE = AwaitedState(DELETED)
_HOLDS: Mapping[Condition, frozenset[str]] = {
    Condition.OK: frozenset({SUCCEEDED}),
    Condition.FAILED: frozenset({FAILED}),
    Condition.ENDED: frozenset({SUCCEEDED, FAILED, CANCELLED}),
}
_TO = {
    Condition.OK: "to succeed",
    Condition.FAILED: "to fail",
    Condition.ENDED: "to end",
    Condition.STARTED: "to start",
}
_NOT = {
    Condition.OK: "did not succeed",
    Condition.FAILED: "did not fail",
    Condition.ENDED: "did not end",
    Condition.STARTED: "never started",
}
_HOW = {SUCCEEDED: "it succeeded", FAILED: "it failed", CANCELLED: "it was cancelled", DELETED: "it was deleted"}


def standing_of(what: Job | Owner | None) -> AwaitedState:
    """Return how far something is, by its record; ``None``: it was forgotten."""
    if what is None:
        return GONE
    if isinstance(what, Job):
        return AwaitedState(what.state.value if what.terminal else "", what.started_at is not None, what.reason)
    return AwaitedState(what.outcome, reason=what.ended_because)


def holds(dependency: Dependency, standing: AwaitedState) -> bool | None:
    """Say whether a condition holds; ``None``: not yet, ``False``: never any more."""
    if dependency.condition is Condition.STARTED:
        return True if standing.started else False if standing.outcome else None
    if not standing.outcome:
        return None
    return standing.outcome in _HOLDS[dependency.condition]


def waits_for(after: Sequence[Dependency], met: Sequence[int] = ()) -> str:
    """Say what is still waited for."""
    left = [dependency for place, dependency in enumerate(after) if place not in met]
    parts = [f"{dependency.noun} {_TO[dependency.condition]}" for dependency in left[:_NAMED]]
    if len(left) > _NAMED:
        parts = [*parts[:-1], f"{len(left) - _NAMED + 1} more"]
    return f"waits for {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{''.join(parts[-1:])}"


def never(dependency: Dependency, standing: AwaitedState) -> str:
    """Say why a condition can never hold any more."""
    how, reason = _HOW[standing.outcome], standing.reason
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[: _LONGEST_REASON - 3]}..."
    return f"{dependency.noun} {_NOT[dependency.condition]}: {how}" + (f": {reason}" if reason else "")


class Looked(Struct, frozen=True):
    """What follows from the state of the things that are waited for."""

    met: tuple[int, ...]
    """Places of the dependencies that are waited for no longer."""
    ready: bool = False
    """Whether nothing is waited for any more."""
    unmet: OnUnmet | None = None
    """What is to follow from one that can never hold."""
    reason: str = ""
    """Which one that is and why; else what is still waited for."""


def look(after: Sequence[Dependency], met: Sequence[int], standings: Sequence[AwaitedState]) -> Looked:
    """Look at how things stand that are waited for.

    Args:
        after: All that has to happen.
        met: Places of what is waited for no longer.
        standings: How each stands, at its place; one that was met already is not looked at.
    """
    met_now, broken = set(met), list[tuple[int, str]]()
    for place, dependency in enumerate(after):
        if place in met_now:
            continue
        answer = holds(dependency, standings[place])
        if answer or (answer is not None and dependency.on_unmet is OnUnmet.RUN):
            met_now.add(place)
        elif answer is not None:
            broken.append((place, never(dependency, standings[place])))
    for place, why in broken:
        if after[place].on_unmet is OnUnmet.CANCEL:
            return Looked(tuple(sorted(met_now)), unmet=OnUnmet.CANCEL, reason=why)
    met_now |= {place for place, _ in broken}  # whoever releases it knows of them
    ready, places = len(met_now) == len(after), tuple(sorted(met_now))
    if broken:
        return Looked(places, ready, OnUnmet.HOLD, "; ".join(why for _, why in broken[:_NAMED]))
    return Looked(places, ready, reason="" if ready else waits_for(after, places))


def met_again(after: Sequence[Dependency], met: Collection[int], standings: Sequence[AwaitedState]) -> tuple[int, ...]:
    """Return which conditions hold for work that is to run again, as things stand now.

    Args:
        after: All that has to happen.
        met: Places of what had happened before; of what was deleted since, that counts.
        standings: How each stands, at its place.
    """
    pairs = enumerate(zip(after, standings, strict=True))
    return tuple(
        place
        for place, (dependency, standing) in pairs
        if holds(dependency, standing) or (standing.outcome == DELETED and place in met)
    )


def met_before(job: Job, after: Sequence[Dependency]) -> Collection[int]:
    """Return the places of what had happened of what a job waits for, when it ended or was last looked at."""
    return job.met if job.ready_at is None else range(len(after))


def kept_waiting(job: Job, after: Sequence[Dependency], now: float) -> Job:
    """Have a job wait for what has not happened yet."""
    return evolve(job, state=JobState.WAITING, reason=waits_for(after, job.met), retry_at=None, updated_at=now)


def advanced(job: Job, after: Sequence[Dependency], standings: Sequence[AwaitedState], now: float) -> Job:
    """Return a job as it goes on after a look at what it waits for; the same if nothing has changed.

    Args:
        job: One that waits, or is held while it does.
        after: All that it waits for.
        standings: How that stands.
        now: The time.
    """
    outlook = look(after, job.met, standings)
    if outlook.unmet is OnUnmet.CANCEL:
        return evolve(
            job,
            state=JobState.CANCELLED,
            reason=outlook.reason,
            cancel_requested=True,
            retry_at=None,
            ended_at=now,
            updated_at=now,
        )
    if outlook.met == job.met:
        return job
    job = evolve(job, met=() if outlook.ready else outlook.met, ready_at=now if outlook.ready else None, updated_at=now)
    if outlook.unmet is OnUnmet.HOLD:
        return evolve(job, state=JobState.HELD, reason=outlook.reason)
    if job.state is JobState.HELD:
        return job
    if outlook.ready:
        return evolve(job, state=JobState.QUEUED, reason="", queued_at=now)
    return evolve(job, reason=outlook.reason)
