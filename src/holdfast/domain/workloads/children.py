"""What workloads made of jobs have in common: their jobs as observed, and the orders about them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.job import ChildOf, Job, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.dependencies import waits_for
from holdfast.domain.workloads.kubejob.records import KubeJobRecord

if TYPE_CHECKING:
    from holdfast.domain.workloads.base import Owner, Workload
    from holdfast.domain.workloads.spec import JobSpec


class ChildPhase(StrEnum):
    """The phase of a child job."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Child(Struct, frozen=True, kw_only=True):
    """One child job as last observed."""

    name: str
    group: str
    """The part of its owner it was created from."""
    index: int = 0
    """Its index among those created from the same part."""
    global_index: int = 0
    """Its index among all jobs of its owner."""
    generation: int = 1
    """Its owner's generation when it was created."""
    restart: int = 0
    """Restarts of its owner when it was created."""
    job_restart: int = 0
    """Its own restarts when it was created."""
    phase: ChildPhase = ChildPhase.ACTIVE
    reason: str = ""
    """Why it failed."""
    message: str = ""
    failed_at: float = 0.0
    certain: bool = False
    """It is certain to fail, and its last pods are stopping (``FailureTarget``)."""
    active_pods: int = 0
    ready_pods: int = 0
    succeeded_pods: int = 0
    suspended: bool = False
    held: bool = False
    """Held by its policy or a person rather than its owner, so that only those release it."""
    size: tuple[int, int | None] | None = None
    """Its parallelism and completions, if they may differ from the template's."""
    deleting_since: float | None = None
    """When its deletion was ordered, while it still exists."""
    at_once: bool = False
    """Whether nothing of it runs, so that it is gone as soon as it is deleted."""

    @property
    def attempt(self) -> tuple[int, int]:
        """Identifies the attempt at this job; each is judged once."""
        return (self.restart, self.job_restart)

    def is_news_after(self, before: Child | None) -> bool:
        """Whether its set must be reconciled because of its changes; a set foresees the effects of its own orders."""
        if before is None:
            return self.suspended
        was = (before.ready_pods, before.succeeded_pods, before.suspended, before.size, before.phase, before.certain)
        return was != (self.ready_pods, self.succeeded_pods, self.suspended, self.size, self.phase, self.certain)


class CreateChild(Struct, frozen=True):
    """Create a job, or restart it from scratch."""

    name: str
    """Unique among the jobs of its owner; a name with a specification of its own is used only once."""
    group: str = ""
    index: int = 0
    global_index: int = 0
    restart: int = 0
    job_restart: int = 0
    suspended: bool = False
    size: tuple[int, int | None] | None = None
    """Its parallelism and completions, if its owner may resize it."""
    spec: str = ""
    """Its specification (``compiled.codec``); empty for a job that was submitted with its owner."""


class DeleteChild(Struct, frozen=True):
    """Delete a job and its pods; ``force`` does not wait for them to stop."""

    name: str
    force: bool = False


class SuspendChild(Struct, frozen=True):
    """Stop a job's pods and keep the job."""

    name: str


class ResumeChild(Struct, frozen=True):
    """Let a job's pods start, as its owner now specifies them."""

    name: str
    group: str = ""


class ResizeChild(Struct, frozen=True):
    """Give a running job another parallelism and number of completions."""

    name: str
    parallelism: int
    completions: int | None


class Forget(Struct, frozen=True):
    """Delete the whole workload, because its time to live has expired."""


Order: TypeAlias = CreateChild | DeleteChild | SuspendChild | ResumeChild | ResizeChild | Forget


def job_of(order: CreateChild, spec: JobSpec, owner: Owner, key: str, now: float) -> Job:
    """Return a new job of its owner; a gang waits for a place by itself, any other kind until its owner starts it."""
    waits = spec.kind != GANG or spec.after
    return Job(
        id=key,
        name=order.name,
        queue=spec.queue,
        priority=spec.priority,
        submitted_at=now,
        spec=order.spec,
        request=spec.resources,
        gang=spec.gang,
        state=JobState.WAITING if waits else JobState.QUEUED,
        reason=waits_for(spec.after) if spec.after else "",
        queued_at=now,
        updated_at=now,
        child=ChildOf(owner.id, order.group, order.index),
        submitted_by=owner.submitted_by,
        submitter_uid=owner.submitter_uid,
        group=owner.group,
        kind=spec.kind,
    )


def record_of(order: CreateChild, job: Job, owner: Workload) -> KubeJobRecord:
    """Return the record of a new attempt at a job made of pods, as ordered by its owner."""
    parallelism, completions = order.size or (None, None)
    return KubeJobRecord(
        job.id,
        owner=owner.id,
        created_at=job.submitted_at,
        generation=owner.generation,
        restart=order.restart,
        job_restart=order.job_restart,
        suspended=order.suspended,
        parallelism=parallelism,
        completions=completions,
    )


HELD_WITH_OWNER = "held with its array or job set"
"""The reason of a job that is held because its owner suspended it."""
_PHASES = {
    JobState.SUCCEEDED: ChildPhase.SUCCEEDED,
    JobState.FAILED: ChildPhase.FAILED,
    JobState.CANCELLED: ChildPhase.CANCELLED,
}


def child_of_gang(job: Job) -> Child:
    """Show a gang job to its owner; it counts as one pod."""
    at, phase = job.child, _PHASES.get(job.state, ChildPhase.ACTIVE)
    return Child(
        name=job.name,
        group=at.group if at is not None else "",
        index=at.index if at is not None else 0,
        phase=phase,
        reason=job.reason if phase is ChildPhase.FAILED else "",
        failed_at=(job.ended_at or 0.0) if phase is ChildPhase.FAILED else 0.0,
        active_pods=int(job.state is JobState.RUNNING),
        suspended=job.state is JobState.HELD and job.reason == HELD_WITH_OWNER,
        held=job.state is JobState.HELD and job.reason != HELD_WITH_OWNER,
        deleting_since=job.updated_at if job.cancel_requested else None,
    )


def child_of(job: Job, record: KubeJobRecord, first: int = 0) -> Child:
    """Show a job made of pods to its owner; ``first`` is the global index of the first job of the same part."""
    at, state = job.child, record.state
    group, index = ("", 0) if at is None else (at.group, at.index)
    child = Child(
        name=job.name,
        group=group,
        index=index,
        global_index=first + index,
        generation=record.generation,
        restart=record.restart,
        job_restart=record.job_restart,
        active_pods=state.active,
        ready_pods=state.ready,
        succeeded_pods=state.succeeded,
        suspended=record.suspended,
        size=None if record.parallelism is None else (record.parallelism, record.completions),
        deleting_since=record.deleting_since,
    )
    if not state.conditions:
        return child
    ended = state.finished
    ending = ended or state.condition("FailureTarget")
    if ending is None:
        return child
    phase = ChildPhase.ACTIVE
    if ended is not None:
        phase = ChildPhase.SUCCEEDED if ended.type == "Complete" else ChildPhase.FAILED
    return evolve(
        child,
        phase=phase,
        reason=ending.reason,
        message=ending.message,
        failed_at=ending.since,
        certain=ended is None,
        at_once=ended is not None,
    )
