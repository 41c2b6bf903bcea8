"""The pods of a job as they are, and the facts that a look at them depends on.

A pod is a place, and the programs that run in it one after the other. What happens to it is decided in ``look``;
whoever carries the orders out decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.policy.model import Backoff
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.judge import Judgement
    from holdfast.domain.workloads.kubejob.model import Pod
    from holdfast.domain.workloads.kubejob.program import PodPlan
    from holdfast.domain.workloads.kubejob.stored import PodRecord

CRASH_BACKOFF = Backoff(initial_s=10.0, max_s=300.0, multiplier=2.0)
"""The kubelet's: 10 s doubling to five minutes."""


class LivePod(Struct, frozen=True):
    """One pod that has not ended."""

    record: PodRecord
    run: Run | None = None
    """Its program; ``None`` while it waits for a place or to start again."""
    first: str = ""
    """Uid its first run will have."""
    request: str = ""
    """Its request for a place; empty while it does not wait in line for one."""
    kept: Run | None = None
    """The place it keeps while it waits to restart in place, charged separately."""
    last: Run | None = None
    """Its last program, while it waits for the next one."""
    failure: tuple[str, Failure] | None = None
    """How its last program failed, which is classified once, with the uid of that run."""
    declined: Decision | None = None
    """What was decided about its last program, where that does not start again in it."""
    shown: tuple[bool, Pod] | None = None
    """How its Job sees it, and whether that is because its Job stopped it."""


class Barrier(NamedTuple):
    """How far a set is that restarts in place: no pod starts anew before all have come to the barrier."""

    previous: int | None = None
    """The restart that all have left behind; ``None`` before there was any, or where no set is known."""
    current: int | None = None
    """The one that pods may begin."""
    uncounted: int = 0
    """Restarts that do not count against its ``maxRestarts``."""

    @property
    def first(self) -> int:
        """Which restart a new pod begins with: the one its set has reached or is gathering for."""
        return 0 if self.previous is None else self.previous + 1


def told_in_place(pods: Mapping[str, LivePod]) -> tuple[int, ...]:
    """List how often pods of a job restarted in place, those that have run or are to go on with the others."""
    records = (pod.record for pod in pods.values())
    return tuple(record.in_place for record in records if record.run or record.in_place)


class TimeLimits(NamedTuple):
    """How long a program may take to stop and to start before it is given up."""

    stop_s: float
    start_s: float | None
    """``None``: any time."""


class PodFacts(Struct, frozen=True, kw_only=True):
    """What a look at the pods of a job depends on, as observed."""

    job: Job
    attempt: Attempt
    plan: PodPlan
    runs: Mapping[str, Run]
    """As they are now, by uid."""
    barrier: Barrier
    categories: CompiledCategories
    cap: int | None
    """``globalMaxRetries``."""
    patience: TimeLimits
    since: Callable[[float], float]
    """Returns a moment by this controller's clock, which may have been set back since."""
    fresh_uid: Callable[[int], str]
    """Returns a uid for a run of a rank that no run of the attempt had before."""
    judging: Callable[[Run], Judgement]
    """Finds out by what a failed program is judged; called once for each, because the answer is expensive."""
    useless: Callable[[Run], bool]
    """Whether a kept place is of no use: its node is drained or short, a device in trouble, or all is paused."""
    backoff: Backoff = CRASH_BACKOFF
    """For ``OnFailure``."""


class Tell(NamedTuple):
    """Something to say in the log of the job's set that its rules do not see."""

    type: str
    reason: str
    message: str
