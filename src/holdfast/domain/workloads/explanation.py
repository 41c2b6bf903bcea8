"""Why a piece of work is where it is: one form for every kind; the sentences are made where the facts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.domain.job import Attempt, Job, JobState, Run
    from holdfast.domain.workloads.array.model import Array
    from holdfast.domain.workloads.jobset.state import SetDecision

W = TypeVar("W")


class TaskGroup(Struct, frozen=True):
    """Jobs that ended alike and of which the same was decided."""

    state: JobState
    why: str
    """What they failed with, or why they were cancelled, with ``I`` for a task's own index."""
    jobs: tuple[Job, ...]
    exit_code: int | None = None
    decision: str = ""
    """What was decided about the last failure, and by which rule."""


class DecisionTrace(Struct, frozen=True):
    """One decision of a job set in sentences."""

    at: float
    decision: SetDecision
    summary: Sequence[str]


class Explanation(Struct, Generic[W], frozen=True):
    """Why something is where it is; what its kind does not have is empty."""

    of: W
    headline: str
    summary: Sequence[str] = ()
    attempt: Attempt | None = None
    """Of a job, the attempt that is explained, its decision complete; ``None`` while there is none."""
    failed_pods: Sequence[Run] = ()
    """The last ones of this attempt, the latest last."""
    groups: Sequence[TaskGroup] = ()
    """Of an array, its tasks that failed or were cancelled, the largest group first."""
    reruns: Sequence[Array] = ()
    """Arrays that run tasks of it again."""
    traces: Sequence[DecisionTrace] = ()
    """Of a job set, the newest decisions, the latest last."""
    omitted: int = 0
    """Failed tasks or earlier decisions that are left out."""
