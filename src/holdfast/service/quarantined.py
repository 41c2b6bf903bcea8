"""Shows quarantine, in the reason of a job or a condition of a job set, and reads around damaged records."""

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
    """Return jobs with the reason for quarantine in those that are quarantined."""
    if not quarantineds:
        return jobs
    return [evolve(job, reason=reason_of(quarantineds[job.id])) if job.id in quarantineds else job for job in jobs]


def shown_set(job_set: JobSet, quarantineds: Mapping[str, Quarantined]) -> JobSet:
    """Return a job set, with a further condition if it is quarantined."""
    quarantine = quarantineds.get(job_set.id)
    if quarantine is None:
        return job_set
    condition = SetCondition(
        CONDITION, status=True, reason=CONDITION, message=quarantine.message, since=quarantine.since
    )
    return evolve(job_set, state=evolve(job_set.state, conditions=(*job_set.state.conditions, condition)))


def reason_of(quarantined: Quarantined) -> str:
    """Return the reason that a quarantined workload shows."""
    return f"quarantined: Holdfast failed while {quarantined.message}"


def kube_of(job: Job) -> KubeJob | None:
    """Return the pods in a job's specification; ``None`` if it has none, or cannot be read."""
    try:
        return load_kube(job.spec)
    except UnreadableSpec:
        return None


def owner_of(store: Store, at: ChildOf | None) -> Workload | None:
    """Return the work that a job is part of; ``None`` if it is part of none, or that cannot be read."""
    try:
        return None if at is None else store.workloads_by_id(Workload, [at.set_id]).get(at.set_id)
    except Internal:
        return None


def kind_of_owner(store: Store, at: ChildOf) -> KindInfo:
    """Return the kind of the work that a job is part of; if that cannot be read, a job set."""
    workload = owner_of(store, at)
    return JOB_SET if workload is None else info_of(workload.kind)


def known_pods(store: Store, job: Job) -> KubeJobRecord | None:
    """Return the record of a job's pods; ``None`` if there is none, or it cannot be read."""
    try:
        return store.workloads_by_id(KubeJobRecord, [job.id]).get(job.id)
    except Internal:
        return None


def known_pods_of(store: Store, jobs: Sequence[Job]) -> Mapping[str, KubeJobRecord]:
    """Return the records of several jobs' pods by job id, without those that cannot be read."""
    try:
        return store.workloads_by_id(KubeJobRecord, [job.id for job in jobs])
    except Internal:
        return {job.id: record for job in jobs if (record := known_pods(store, job)) is not None}


def itself(row: Workload) -> Workload:
    """Return the row, which is the workload itself."""
    return row


def readable(
    rows: Iterable[A], read: Callable[[A], B], of: Callable[[A], Workload], unreadable: OnUnreadable = leave_out
) -> list[B]:
    """Read a list; reports rows with damaged specifications to ``unreadable`` and leaves them out."""
    records = []
    for row in rows:
        try:
            records.append(read(row))
        except UnreadableSpec as error:
            unreadable(Unreadable(of(row).id, of(row).name, error.message))
    return records
