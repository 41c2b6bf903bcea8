"""Wire models of arrays."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.jobs import DependencyView
from holdfast.wire.problems import ProblemEntry, UnreadableView


class ArrayRerun(Body):
    """Which tasks of an array to rerun, and what to change; at least one of the first four fields is required."""

    failed: bool = False
    """Rerun the failed tasks."""
    cancelled: bool = False
    """Rerun the cancelled tasks, and those never created because the array ended before."""
    causes: list[str] = Field(default_factory=list, max_length=100)
    """Rerun tasks that failed with one of these causes, categories or subcategories."""
    indices: str | None = None
    """Only these tasks, such as ``3,7-9``; alone, it selects them however they ended."""
    name: str | None = None
    """The name of the new array; by default that of the first one with ``-rerun-1`` and so on."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Changes of the tasks, as a merge patch of the job's manifest in the short form."""


class ArrayLink(Response):
    """A reference to another array."""

    id: str
    name: str


class ArrayView(Response):
    """An array and its progress."""

    id: str
    name: str
    queue: str
    state: str
    """Queued, Waiting (for other work), Held, Running, Stopping, Succeeded, Failed, Cancelled or Deleting."""
    reason: str = ""
    total: int
    """The number of all tasks."""
    waiting: int
    """Tasks that neither run nor have ended, created or not."""
    running: int
    succeeded: int
    failed: int
    cancelled: int
    eta_s: float | None = None
    """Estimated seconds until the last task ends."""
    max_running: int | None = None
    depends_on: list[DependencyView] = Field(default_factory=list)
    """Dependencies: what must happen, or had to, before its tasks start."""
    rerun_of: ArrayLink | None = None
    """The array whose tasks it reruns."""
    indices: str | None = None
    """The tasks it reruns, such as ``3,7-9``."""
    labels: dict[str, str] = Field(default_factory=dict)
    submitted_by: str = ""
    """The submitter, who stays its owner whoever reruns it; empty if unknown."""
    group: str = ""
    created_at: Timestamp
    ended_at: Timestamp | None = None


class ArrayAccepted(ArrayView):
    """An array that was just submitted."""

    warnings: list[ProblemEntry] = Field(default_factory=list)


class ArrayApplied(ArrayAccepted):
    """An array that was compared with a manifest."""

    result: str
    """``updated`` or ``unchanged``."""


class ArrayPage(Response):
    """A page of arrays."""

    items: list[ArrayView]
    next_cursor: str | None = None
    unreadable: list[UnreadableView] = Field(default_factory=list)
    """Damaged arrays that this page leaves out; they can be deleted."""


class FailureGroupView(Response):
    """Tasks that failed in the same way."""

    cause: str
    """The category, or the cause if there is none."""
    exit_code: int | None = None
    decision: str
    """The decision on the last failure of each task."""
    count: int
    indexes: str
    """The tasks, such as ``3,7-9``."""
    example: str
    """The reason of the newest failure."""


class CancelGroupView(Response):
    """Tasks that were cancelled for the same reason."""

    reason: str
    """The reason, with ``I`` for the task's own index."""
    count: int
    indexes: str
    example: str
    """When the newest of them was cancelled."""


class ArrayWhy(Response):
    """Why an array is in its state."""

    array: ArrayView
    headline: str
    groups: list[FailureGroupView]
    cancelled: list[CancelGroupView] = Field(default_factory=list)
    reruns: list[ArrayLink] = Field(default_factory=list)
    """The arrays that rerun its tasks."""
    omitted: int = 0
    """The oldest failed tasks that are in no group."""
