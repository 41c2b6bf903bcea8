"""Reads the store so that one damaged record does not keep the others from being used.

A job may name a job set that does not exist, because it is damaged. Nobody would start or stop such a job, so it is
quarantined, where a person finds and can cancel it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.compiled.workloads import stands_in
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.base import Workload
from holdfast.errors import HoldfastError, Internal, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.domain.job import Job
    from holdfast.ports.store import ControllerStore, Snapshot

A = TypeVar("A")


def read_each(
    read: Callable[[list[str]], A], keys: Sequence[str], damaged: Callable[[str, HoldfastError], None]
) -> Sequence[A]:
    """Read records all at once, or one by one if that fails; returns the results.

    Args:
        read: Reads the records with some ids.
        keys: The ids.
        damaged: Called with the id of each unreadable record, and why.

    Raises:
        Unavailable: Nothing can be read now.
    """
    try:
        return [read(list(keys))]
    except Unavailable:
        raise
    except HoldfastError as error:
        if len(keys) > 1:
            return [answer for key in keys for answer in read_each(read, [key], damaged)]
        damaged(keys[0], error)
        return ()


def strays(snapshot: Snapshot) -> Iterator[tuple[str, HoldfastError]]:
    """Yield the jobs whose job set does not exist, by id, with the error of each."""
    for job in snapshot.jobs:
        at = job.child
        if at is None or not _needs_set(job) or at.set_id in snapshot.unreadable:
            continue
        if not stands_in(snapshot.workloads.get(at.set_id), at):
            yield job.id, _lost(job)


def require_set(job: Job, store: ControllerStore) -> None:
    """Make sure that the job set of a job exists, if the job names one.

    Raises:
        Internal: It does not.
    """
    if job.child is None or not _needs_set(job):
        return
    try:
        owner = store.workloads_by_id(Workload, [job.child.set_id]).get(job.child.set_id)
    except Internal:
        return  # The set is damaged, and reports that itself.
    if not stands_in(owner, job.child):
        raise _lost(job)


def _needs_set(job: Job) -> bool:
    """Whether a job needs a job set: it names one, or is made of pods. A task of an array can do without."""
    return job.of_set is not None or job.kind != GANG


def _lost(job: Job) -> Internal:
    named = "" if job.child is None else f" {job.child.set_id!r}"
    message = f"it is of job set{named}, which is not there or has no such job"
    return Internal(message, hint="its row is damaged: cancel it, or restore the database from a backup")
