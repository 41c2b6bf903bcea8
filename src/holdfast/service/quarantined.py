"""Shows what is quarantined: jobs by their reason, job sets by a condition; and what is left of what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.compiled.codec import load_kube
from holdfast.domain.record import evolve
from holdfast.domain.terms.kinds import JOB_SET, info_of
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.jobset.state import SetCondition
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import Internal, UnreadableSpec
from holdfast.ports.workloads import Unreadable, leave_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.job import ChildOf, Job
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.domain.workloads.spec import KubeJob
    from holdfast.ports.store import Store
    from holdfast.ports.workloads import OnUnreadable

CONDITION = "Quarantined"
A = TypeVar("A")
B = TypeVar("B")


def shown_jobs(jobs: Sequence[Job], quarantineds: Mapping[str, Quarantined]) -> Sequence[Job]:
    """Show jobs, those that are quarantined with that as their reason."""
    if not quarantineds:
        return jobs
    return [evolve(job, reason=reason_of(quarantineds[job.id])) if job.id in quarantineds else job for job in jobs]


def shown_set(job_set: JobSet, quarantineds: Mapping[str, Quarantined]) -> JobSet:
    """Show a job set, with one condition more if it is quarantined."""
    quarantine = quarantineds.get(job_set.id)
    if quarantine is None:
        return job_set
    condition = SetCondition(
        CONDITION, status=True, reason=CONDITION, message=quarantine.message, since=quarantine.since
    )
    return evolve(job_set, state=evolve(job_set.state, conditions=(*job_set.state.conditions, condition)))


def reason_of(quarantined: Quarantined) -> str:
    """Say why a workload is left alone."""
    return f"quarantined: Holdfast failed while {quarantined.message}"


def kube_of(job: Job) -> KubeJob | None:
    """Return the pods of a job's specification; ``None`` if it has none, or cannot be read."""
    try:
        return load_kube(job.spec)
    except UnreadableSpec:
        return None


def owner_of(store: Store, at: ChildOf | None) -> Workload | None:
    """Return the work that a job is part of, of whatever kind; ``None`` if there is none, or it cannot be read."""
    try:
        return None if at is None else store.workloads_by_id(Workload, [at.set_id]).get(at.set_id)
    except Internal:
        return None


def kind_of_owner(store: Store, at: ChildOf) -> KindInfo:
    """Return the kind of the work that a job is part of; of what cannot be read, a job set."""
    workload = owner_of(store, at)
    return JOB_SET if workload is None else info_of(workload.kind)


def known_pods(store: Store, job: Job) -> KubeJobRecord | None:
    """Return what is remembered of a job's pods; ``None`` if that is nothing, or cannot be read."""
    try:
        return store.workloads_by_id(KubeJobRecord, [job.id]).get(job.id)
    except Internal:
        return None


def known_pods_of(store: Store, jobs: Sequence[Job]) -> Mapping[str, KubeJobRecord]:
    """Return what is remembered of the pods of some jobs, by id; what cannot be read is left out."""
    try:
        return store.workloads_by_id(KubeJobRecord, [job.id for job in jobs])
    except Internal:
        return {job.id: record for job in jobs if (record := known_pods(store, job)) is not None}


def itself(row: Workload) -> Workload:
    """Return the workload that a row of a list of workloads is about."""
    return row


def readable(
    rows: Iterable[A], read: Callable[[A], B], of: Callable[[A], Workload], unreadable: OnUnreadable = leave_out
) -> list[B]:
    """Read a list; what has a damaged specification is told, and left out: there is nothing to show of it."""
    records = []
    for row in rows:
        try:
            records.append(read(row))
        except UnreadableSpec as error:
            unreadable(Unreadable(of(row).id, of(row).name, error.message))
    return records
