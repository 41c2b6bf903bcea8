"""Dependencies: the jobs, arrays and job sets that a job waits for before it may start, and the conditions on them.

The conditions are Slurm's (``--dependency=afterok``, ``afternotok``, ``afterany``, ``after``, and ``aftercorr`` for
tasks of arrays). Unlike in Slurm, no job waits for what can no longer happen (``DependencyNeverSatisfied``).
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
"""The most dependencies of one job."""
_LONGEST_REASON = 200
"""How much of another reason is quoted; a long chain of cancellations would repeat all of them otherwise."""
_NAMED = 3
"""How many dependencies a reason names before it counts the others."""


class DependencyKind:
    """The kinds of workload that can be waited for, by name."""

    JOB = JOB.name
    ARRAY = ARRAY.name
    JOB_SET = JOB_SET.name


class Condition(StrEnum):
    """What has to happen to a dependency."""

    OK = "ok"
    """It succeeds."""
    FAILED = "failed"
    """It fails for good; a cancelled one has not failed."""
    ENDED = "ended"
    """It ends in any way."""
    STARTED = "started"
    """It starts for the first time; only for jobs."""


class OnUnmet(StrEnum):
    """What happens to a job when a condition can no longer be met."""

    CANCEL = "cancel"
    """It is cancelled without a run, and so are jobs that wait for it to succeed."""
    HOLD = "hold"
    """It is held; once released, it waits only for its other dependencies."""
    RUN = "run"
    """It no longer waits for that dependency."""


class Dependency(Struct, frozen=True):
    """One dependency of a job."""

    name: str
    """The name of the workload; as written by the user until submission."""
    condition: Condition = Condition.OK
    on_unmet: OnUnmet = OnUnmet.CANCEL
    by_index: bool = False
    """Of an array on an array: whether each task waits for the task of its own index."""
    target: str | None = None
    """The kind of the workload; ``None`` until submission."""
    id: str = ""
    outcome: str = ""
    """How it had ended at submission, if it had; this stays even when it is deleted."""
    reason: str = ""
    """Why it had ended like this."""
    array: str = ""
    """For a task, the id of its array, which may create it later."""

    @property
    def noun(self) -> str:
        """Return its kind and name: ``job train``."""
        return f"{info_of(self.target).noun} {self.name}"


DELETED = "Deleted"
SUCCEEDED, FAILED, CANCELLED = (state.value for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))


class AwaitedState(Struct, frozen=True):
    """The state of a workload that is waited for."""

    outcome: str = ""
    """``Succeeded``, ``Failed``, ``Cancelled`` or ``Deleted``; empty until it has ended."""
    started: bool = False
    reason: str = ""
    """Why it ended like this."""
    missing: bool = False
    """It does not exist (yet)."""


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


def state_of(what: Job | Owner | None) -> AwaitedState:
    """Return the state of a workload from its record; ``None`` is one that was deleted."""
    if what is None:
        return GONE
    if isinstance(what, Job):
        return AwaitedState(what.state.value if what.terminal else "", what.started_at is not None, what.reason)
    return AwaitedState(what.outcome, reason=what.ended_because)


def holds(dependency: Dependency, standing: AwaitedState) -> bool | None:
    """Return whether a condition holds; ``None`` is not yet, ``False`` never."""
    if dependency.condition is Condition.STARTED:
        return True if standing.started else False if standing.outcome else None
    if not standing.outcome:
        return None
    return standing.outcome in _HOLDS[dependency.condition]


def waits_for(after: Sequence[Dependency], met: Sequence[int] = ()) -> str:
    """Return ``waits for job a to succeed`` and the like."""
    left = [dependency for place, dependency in enumerate(after) if place not in met]
    parts = [f"{dependency.noun} {_TO[dependency.condition]}" for dependency in left[:_NAMED]]
    if len(left) > _NAMED:
        parts = [*parts[:-1], f"{len(left) - _NAMED + 1} more"]
    return f"waits for {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{''.join(parts[-1:])}"


def why_never(dependency: Dependency, standing: AwaitedState) -> str:
    """Say why a condition can never hold."""
    how, reason = _HOW[standing.outcome], standing.reason
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[: _LONGEST_REASON - 3]}..."
    return f"{dependency.noun} {_NOT[dependency.condition]}: {how}" + (f": {reason}" if reason else "")


class DependencyCheck(Struct, frozen=True):
    """The result of checking dependencies."""

    met: tuple[int, ...]
    """Positions of the dependencies that are no longer waited for."""
    ready: bool = False
    """Whether no dependency is left."""
    unmet: OnUnmet | None = None
    """What to do because a condition can never hold, if so."""
    reason: str = ""
    """Which condition that is and why; else what is still waited for."""


def check(after: Sequence[Dependency], met: Sequence[int], standings: Sequence[AwaitedState]) -> DependencyCheck:
    """Check dependencies.

    Args:
        after: All dependencies.
        met: Positions of those that are no longer waited for, which are not checked.
        standings: The state of each dependency, at its position.
    """
    met_now, broken = set(met), list[tuple[int, str]]()
    for place, dependency in enumerate(after):
        if place in met_now:
            continue
        answer = holds(dependency, standings[place])
        if answer or (answer is not None and dependency.on_unmet is OnUnmet.RUN):
            met_now.add(place)
        elif answer is not None:
            broken.append((place, why_never(dependency, standings[place])))
    for place, why in broken:
        if after[place].on_unmet is OnUnmet.CANCEL:
            return DependencyCheck(tuple(sorted(met_now)), unmet=OnUnmet.CANCEL, reason=why)
    # Releasing the job also dismisses these.
    met_now |= {place for place, _ in broken}
    ready, places = len(met_now) == len(after), tuple(sorted(met_now))
    if broken:
        return DependencyCheck(places, ready, OnUnmet.HOLD, "; ".join(why for _, why in broken[:_NAMED]))
    return DependencyCheck(places, ready, reason="" if ready else waits_for(after, places))


def met_again(after: Sequence[Dependency], met: Collection[int], standings: Sequence[AwaitedState]) -> tuple[int, ...]:
    """Return the positions of the conditions that hold now, for a job that is to run again.

    Args:
        after: All dependencies.
        met: Positions of those met before, which count for workloads that were deleted since.
        standings: The state of each dependency, at its position.
    """
    pairs = enumerate(zip(after, standings, strict=True))
    return tuple(
        place
        for place, (dependency, standing) in pairs
        if holds(dependency, standing) or (standing.outcome == DELETED and place in met)
    )


def met_before(job: Job, after: Sequence[Dependency]) -> Collection[int]:
    """Return the positions of the dependencies that were met when a job ended or was last checked."""
    return job.met if job.ready_at is None else range(len(after))


def kept_waiting(job: Job, after: Sequence[Dependency], now: float) -> Job:
    """Let a job wait for its remaining dependencies."""
    return evolve(job, state=JobState.WAITING, reason=waits_for(after, job.met), retry_at=None, updated_at=now)


def advanced(job: Job, after: Sequence[Dependency], standings: Sequence[AwaitedState], now: float) -> Job:
    """Move a job on by its dependencies; returns the same job if nothing has changed.

    Args:
        job: A job that waits, or is held while it does.
        after: All its dependencies.
        standings: Their states.
        now: The time.
    """
    outlook = check(after, job.met, standings)
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
