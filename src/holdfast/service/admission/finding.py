"""Finds the work that a caller names, among the work that the caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.access.grants import Right
from holdfast.domain.record import Struct
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Owner
    from holdfast.ports.store import Store


class Finder(Protocol):
    """Finds the work that a caller names, among the work that the caller may see."""

    def find_job(self, reference: str) -> Job:
        """Find a job by id, name or prefix.

        Raises:
            NotFound: The caller sees no such job.
        """

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name that the caller may change."""

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set by id or name.

        Raises:
            NotFound: The caller sees no such work.
        """

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names of arrays or of job sets."""

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Check that the caller may change what an array or a job set runs, or has another right to it.

        Raises:
            Forbidden: The caller may not: the changed work would run as another user.
            AlreadyExists: The caller may not see it, but its name is taken.
            NotFound: The caller may not see it, and ``must_exist`` is set.
        """


class Everything(Struct, frozen=True):
    """Finds all work, without a caller's limits."""

    store: Store

    def find_job(self, reference: str) -> Job:
        """Find a job; see ``Finder``."""
        return self.store.job(reference)

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name."""
        try:
            job = self.store.job(name)
        except NotFound:
            return None
        return job if job.name == name else None

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set; see ``Finder``."""
        return self.store.workload(kind, reference)

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names; see ``Finder``."""
        return [workload.name for workload in self.store.workloads(kind, limit=limit)]

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Allow everything."""
