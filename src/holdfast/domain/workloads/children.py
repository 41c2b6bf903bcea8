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
    """What of its owner it was made from."""
    index: int = 0
    """Among those made from the same."""
    global_index: int = 0
    """Among all of its owner."""
    generation: int = 1
    """Its owner's, when it was created."""
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
    """It is certain to fail and its last pods are going (``FailureTarget``)."""
    active_pods: int = 0
    ready_pods: int = 0
    succeeded_pods: int = 0
    suspended: bool = False
    held: bool = False
    """By its policy or a person, and not by its owner, so that only those release it."""
    size: tuple[int, int | None] | None = None
    """Its parallelism and completions, where they may differ from the template's."""
    deleting_since: float | None = None
    """When its deletion was ordered; it still exists."""
    at_once: bool = False
    """Whether nothing of it runs any more, so that it is gone as soon as it is deleted."""

    @property
    def attempt(self) -> tuple[int, int]:
        """Which attempt at this job it is; each is judged once."""
        return (self.restart, self.job_restart)

    def is_news_after(self, before: Child | None) -> bool:
        """Whether a set has to look at what has become of it; it has foreseen what follows from its own orders."""
        if before is None:
            return self.suspended
        was = (before.ready_pods, before.succeeded_pods, before.suspended, before.size, before.phase, before.certain)
        return was != (self.ready_pods, self.succeeded_pods, self.suspended, self.size, self.phase, self.certain)


class CreateChild(Struct, frozen=True):
    """Create a job, or start it again from scratch."""

    name: str
    """Unique among the jobs of its owner; one with a specification of its own is used once."""
    group: str = ""
    index: int = 0
    global_index: int = 0
    restart: int = 0
    job_restart: int = 0
    suspended: bool = False
    size: tuple[int, int | None] | None = None
    """Its parallelism and completions, where its owner may resize it."""
    spec: str = ""
    """What it is made from (``compiled.codec``); empty for a job that was submitted with its owner."""


class DeleteChild(Struct, frozen=True):
    """Delete a job and all of its pods; ``force`` waits for none of them."""

    name: str
    force: bool = False


class SuspendChild(Struct, frozen=True):
    """Stop a job's pods and keep the job."""

    name: str


class ResumeChild(Struct, frozen=True):
    """Let a job's pods start, as its owner describes them now."""

    name: str
    group: str = ""


class ResizeChild(Struct, frozen=True):
    """Give a running job another parallelism and number of completions."""

    name: str
    parallelism: int
    completions: int | None


class Forget(Struct, frozen=True):
    """Delete the whole workload: its time to live has expired."""


Order: TypeAlias = CreateChild | DeleteChild | SuspendChild | ResumeChild | ResizeChild | Forget


def job_of(order: CreateChild, spec: JobSpec, owner: Owner, key: str, now: float) -> Job:
    """Return a job as its owner submits it; a gang waits for a place by itself, any other for its owner's word."""
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


def begun_as(order: CreateChild, job: Job, owner: Workload) -> KubeJobRecord:
    """Return the record of a new attempt at a job made of pods, as its owner orders it."""
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
"""Why a job is held that its owner suspended."""
_PHASES = {
    JobState.SUCCEEDED: ChildPhase.SUCCEEDED,
    JobState.FAILED: ChildPhase.FAILED,
    JobState.CANCELLED: ChildPhase.CANCELLED,
}


def gang_of(job: Job) -> Child:
    """Show a job that is a gang to its owner; it counts as one pod."""
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
    """Show a job to its owner; ``first`` is the global index of the first that was made from the same."""
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
    if not state.conditions:  # as of most
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
