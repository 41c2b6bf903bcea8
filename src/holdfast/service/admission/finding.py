"""Finds what somebody names, among what they may know of."""

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
    """Finds what somebody names, among what they may know of."""

    def find_job(self, reference: str) -> Job:
        """Find a job by id, name or prefix.

        Raises:
            NotFound: There is none that they may know of.
        """

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name that is theirs to change."""

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set by id or name.

        Raises:
            NotFound: There is none that they may know of.
        """

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names of arrays or of job sets."""

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Check that they may change what an array or a job set of a name runs, or have another right to it.

        Raises:
            Forbidden: They have no such right; what is changed would run as somebody else.
            AlreadyExists: It is nothing that they may know of, and the name is taken; or with ``must_exist``
            NotFound: there is none that they may know of.
        """


class Everything(Struct, frozen=True):
    """Finds whatever there is, for those who may know of all."""

    store: Store

    def find_job(self, reference: str) -> Job:
        """Find a job by id, name or prefix.

        Raises:
            NotFound: There is none.
        """
        return self.store.job(reference)

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name."""
        try:
            job = self.store.job(name)
        except NotFound:
            return None
        return job if job.name == name else None

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set by id or name.

        Raises:
            NotFound: There is none.
        """
        return self.store.workload(kind, reference)

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names of arrays or of job sets."""
        return [workload.name for workload in self.store.workloads(kind, limit=limit)]

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Allow it."""
