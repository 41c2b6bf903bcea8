"""Reruns: which tasks of an array are run again, and the array that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array, Origin, spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.domain.job import Attempt
    from holdfast.domain.workloads.array.model import ArraySpec


class TaskChoice(Struct, frozen=True):
    """Selects tasks; every condition must hold, but failed and cancelled tasks add up."""

    failed: bool = False
    cancelled: bool = False
    """Including tasks that were never created, because the array ended before."""
    causes: frozenset[str] = frozenset()
    """Causes, categories or subcategories of failed tasks, which these select."""
    indexes: frozenset[int] | None = None
    """Only these; without another condition, however they ended."""

    @property
    def any_end(self) -> bool:
        """Whether it does not matter how a task ended."""
        return not (self.failed or self.cancelled or self.causes)


class Task(Struct, frozen=True):
    """The current state of a task."""

    index: int
    state: JobState | None
    """``None`` if it was never created, or is forgotten."""
    causes: frozenset[str] = frozenset()
    """Cause, category and subcategory of a failed task, if requested."""
    forgotten: bool = False
    """Whether it ended and was deleted, so that its state is unknown."""


def is_selected(choice: TaskChoice, task: Task) -> bool:
    """Whether a task that has ended, or will never be created, is selected."""
    if choice.indexes is not None and task.index not in choice.indexes:
        return False
    if choice.any_end:
        return True
    if task.state is JobState.FAILED:
        return not choice.causes.isdisjoint(task.causes) if choice.causes else choice.failed
    return choice.cancelled and task.state in {JobState.CANCELLED, None} and not task.forgotten


def causes_of(attempt: Attempt | None) -> frozenset[str]:
    """Return the names by which a task's last failure can be selected."""
    failure = None if attempt is None else attempt.failure
    if failure is None:
        return frozenset()
    return frozenset(filter(None, (str(failure.cause), failure.category, failure.subcategory)))


def some_of(spec: ArraySpec, indexes: Iterable[int]) -> ArraySpec:
    """Return an array of some of an array's tasks; it succeeds when all of them do."""
    return evolve(spec, only=spans(indexes), at_least=None)


def origins_of(array: Array) -> tuple[Origin, ...]:
    """Return the origins of a rerun of an array."""
    return (Origin(array.id, array.name), *array.origins)


def unused_name(array: Array, existing: Collection[str]) -> str:
    """Name a rerun after the first array of its origins."""
    first = array.origins[-1].name if array.origins else array.name
    number = 1
    while (name := f"{first}-rerun-{number}") in existing:
        number += 1
    return name
