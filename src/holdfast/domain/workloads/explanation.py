"""Explanations of workloads, in one form for every kind."""

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
    """Jobs that ended in the same way, with the same decision."""

    state: JobState
    why: str
    """Why they failed or were cancelled, with ``I`` for a task's own index."""
    jobs: tuple[Job, ...]
    exit_code: int | None = None
    decision: str = ""
    """The decision about the last failure, and its rule."""


class DecisionTrace(Struct, frozen=True):
    """One decision of a job set, in sentences."""

    at: float
    decision: SetDecision
    summary: Sequence[str]


class Explanation(Struct, Generic[W], frozen=True):
    """Why a workload is in its state; fields that its kind does not have are empty."""

    of: W
    headline: str
    summary: Sequence[str] = ()
    attempt: Attempt | None = None
    """For a job, the attempt that is explained, with its complete decision; ``None`` if there is none."""
    failed_pods: Sequence[Run] = ()
    """The last failed pods of this attempt, the latest last."""
    groups: Sequence[TaskGroup] = ()
    """For an array, its failed and cancelled tasks, the largest group first."""
    reruns: Sequence[Array] = ()
    """Arrays that rerun its tasks."""
    traces: Sequence[DecisionTrace] = ()
    """For a job set, the newest decisions, the latest last."""
    omitted: int = 0
    """How many failed tasks or earlier decisions are left out."""
