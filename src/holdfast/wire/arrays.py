"""Arrays, as the outside sees them."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.jobs import DependencyView
from holdfast.wire.problems import ProblemEntry, UnreadableView


class ArrayRerun(Body):
    """Which tasks of an array to run again, and what is different then; it says at least one of the first four."""

    failed: bool = False
    """Those that failed."""
    cancelled: bool = False
    """Those that were cancelled, and those that were never made because the array ended before."""
    causes: list[str] = Field(default_factory=list, max_length=100)
    """Those that failed with one of these causes, categories or subcategories."""
    indices: str | None = None
    """Only these, such as ``3,7-9``; if nothing else is said, however they ended."""
    name: str | None = None
    """Of the new array; by default that of the first one with ``-rerun-1`` and so on."""
    set: dict[str, Any] = Field(default_factory=dict)
    """What its tasks ask for, as a merge patch of the job's manifest in the short form."""


class ArrayLink(Response):
    """Another array."""

    id: str
    name: str


class ArrayView(Response):
    """An array, and how far it is."""

    id: str
    name: str
    queue: str
    state: str
    """Queued, Waiting (for other work), Held, Running, Stopping, Succeeded, Failed, Cancelled or Deleting."""
    reason: str = ""
    total: int
    """Tasks in all."""
    waiting: int
    """Those that have neither ended nor run now, made or not."""
    running: int
    succeeded: int
    failed: int
    cancelled: int
    eta_s: float | None = None
    """Seconds until the last would end if all went on as until now."""
    max_running: int | None = None
    depends_on: list[DependencyView] = Field(default_factory=list)
    """What had to happen before its tasks could start, or still has to."""
    rerun_of: ArrayLink | None = None
    """The array some tasks of which it runs again."""
    indices: str | None = None
    """Of a rerun, which tasks these are, such as ``3,7-9``."""
    labels: dict[str, str] = Field(default_factory=dict)
    submitted_by: str = ""
    """Whose it is: who submitted it, whoever reruns it; empty where nobody is known."""
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
    """What is left out of this page, because it is damaged; it can be deleted."""


class FailureGroupView(Response):
    """Tasks that failed alike."""

    cause: str
    """The category, or else the cause."""
    exit_code: int | None = None
    decision: str
    """What was decided about the last failure of each."""
    count: int
    indexes: str
    """Of the tasks, such as ``3,7-9``."""
    example: str
    """Why the newest of them failed."""


class CancelGroupView(Response):
    """Tasks that were cancelled for the same reason."""

    reason: str
    """With ``I`` for the task's own index."""
    count: int
    indexes: str
    example: str
    """Of the newest of them."""


class ArrayWhy(Response):
    """Why an array is where it is."""

    array: ArrayView
    headline: str
    groups: list[FailureGroupView]
    cancelled: list[CancelGroupView] = Field(default_factory=list)
    reruns: list[ArrayLink] = Field(default_factory=list)
    """The arrays that run tasks of it again."""
    omitted: int = 0
    """Failed tasks, the oldest, that are in no group."""
