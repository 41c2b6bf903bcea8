"""The part of the storage port that reads workloads of any kind; the controller's part is in ``store``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from holdfast.domain.record import Struct
from holdfast.domain.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Owner
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.ports.requests import Request

W = TypeVar("W", bound=Workload)


class Rerun(Struct, frozen=True):
    """Tasks of an array that another one runs again."""

    array: str
    """Id of the one that runs them again."""
    of: str
    """Id of the one whose tasks they were."""
    root: str
    """Id of the one that all of it began with, where they have the same indexes."""
    number: int
    """For which time they run again, from 1."""
    indexes: Sequence[int]
    existing: Sequence[str] = ()
    """Ids of those tasks that were still there when this was made; their files are taken over."""


class WorkloadFilter(Struct, frozen=True):
    """Which workloads to list; every field that is set must hold."""

    submitted_by: str | None = None
    """Only that one's."""
    group: Grouped | None = None
    seen: Seen | None = None
    """Only those that somebody may know of; ``None``: all."""


EVERY = WorkloadFilter()


class AskedOf(Struct, Generic[W], frozen=True):
    """A workload and its pending requests, in order; both at one instant."""

    workload: W
    requests: Sequence[Request] = ()


class Unreadable(Struct, frozen=True):
    """A workload that a list has to leave out, because it cannot be read."""

    id: str
    name: str
    why: str


OnUnreadable: TypeAlias = "Callable[[Unreadable], object]"
"""Called with each workload that a list leaves out."""


def leave_out(_: Unreadable) -> None:
    """Do without what cannot be read."""


class Left(Struct, frozen=True):
    """What can be read of a workload of which something cannot: nothing is ever decided from it."""

    owner: Owner | None = None
    """It without its state, if it is made of jobs."""
    jobs: Sequence[Job] = ()
    """Its jobs, or itself if it is one; those that have not ended."""


class WorkloadQueries(Protocol):
    """Readers' queries about workloads; each is about those of one kind, named by its record."""

    def workload(self, kind: type[W], reference: str) -> W:
        """Find a workload by id, or by name.

        Raises:
            NotFound: None matches.
        """

    def left_of(self, kind: type[W], reference: str) -> W:
        """Find a workload that cannot be read by id, or by name, with no more of it than what has columns of its own.

        Raises:
            NotFound: None matches.
        """

    def workloads(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        unreadable: OnUnreadable = leave_out,
    ) -> Sequence[W]:
        """List workloads that have names by name, those whose name comes after ``after``; what is damaged is told."""

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return those workloads, by id; others are left out. ``Workload`` itself stands for every kind."""

    def reran(self, root: str) -> Mapping[int, str]:
        """Return which tasks of an array run again, and the id of the last array that does; also by way of others."""

    def asked_of(self, kind: type[W], reference: str) -> AskedOf[W]:
        """Find a workload by id, or by name, with its pending requests.

        Raises:
            NotFound: None matches.
        """

    def all_asked_of(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        unreadable: OnUnreadable = leave_out,
    ) -> Sequence[AskedOf[W]]:
        """List workloads as ``workloads`` does, each with its pending requests."""

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
