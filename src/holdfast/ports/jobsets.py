"""The part of the storage port that reads job sets; the controller's part is in ``store``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.workloads.jobset.state import JobSet, SetLogEntry
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord


class JobSetQueries(Protocol):
    """Readers' queries about job sets."""

    def job_set(self, reference: str) -> JobSet:
        """Find a job set by id, or by name.

        Raises:
            NotFound: None matches.
        """
        ...

    def job_sets(self, *, after: str = "", limit: int | None = None) -> Sequence[JobSet]:
        """List job sets by name, those whose name comes after ``after``."""
        ...

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
        ...

    def kube_jobs(self, job_ids: Sequence[str]) -> Mapping[str, KubeJobRecord]:
        """Return the pod state of those jobs, by job id; others are left out."""
        ...
