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
    """Tasks of an array that another array reruns."""

    array: str
    """The id of the array that reruns them."""
    of: str
    """The id of the array whose tasks they were."""
    root: str
    """The id of the first array in the chain of reruns; all of them share its indexes."""
    number: int
    """The number of the rerun, from 1."""
    indexes: Sequence[int]
    existing: Sequence[str] = ()
    """Ids of the tasks that still existed when this was created; their files are taken over."""


class WorkloadFilter(Struct, frozen=True):
    """A selection of workloads; every field that is set must hold."""

    submitted_by: str | None = None
    """Only workloads of this submitter."""
    group: Grouped | None = None
    seen: Seen | None = None
    """Only workloads that the caller may know of; ``None``: all."""


EVERY = WorkloadFilter()


class AskedOf(Struct, Generic[W], frozen=True):
    """A workload and its pending requests in order, at one instant."""

    workload: W
    requests: Sequence[Request] = ()


class Unreadable(Struct, frozen=True):
    """A workload that cannot be read, so that lists leave it out."""

    id: str
    name: str
    why: str


OnUnreadable: TypeAlias = "Callable[[Unreadable], object]"
"""Called with each workload that a list leaves out."""


def leave_out(_: Unreadable) -> None:
    """Ignore an unreadable workload."""


class Left(Struct, frozen=True):
    """The readable rest of a damaged workload; no decision relies on it."""

    owner: Owner | None = None
    """The workload without its state, if it owns jobs."""
    jobs: Sequence[Job] = ()
    """Its unfinished jobs, or itself if it is one."""


class WorkloadQueries(Protocol):
    """Readers' queries about the workloads of one kind, named by its record class."""

    def workload(self, kind: type[W], reference: str) -> W:
        """Find a workload by id, or by name.

        Raises:
            NotFound: None matches.
        """

    def left_of(self, kind: type[W], reference: str) -> W:
        """Find an unreadable workload by id or name, with only the fields that have columns of their own.

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
        """List workloads by name, those after ``after``; ``damaged`` is called with each unreadable one."""

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return workloads by id; unknown ids are left out. ``Workload`` itself stands for every kind."""

    def reran(self, root: str) -> Mapping[int, str]:
        """Return which tasks of an array were rerun, even indirectly, and the id of the last array that does it."""

    def asked_of(self, kind: type[W], reference: str) -> AskedOf[W]:
        """Find a workload by id or name, with its pending requests.

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
        """List workloads like ``workloads``, each with its pending requests."""

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List the log of a job set in order, entries with ``seq > after``; an unknown set has none."""
