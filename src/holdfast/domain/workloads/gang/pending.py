"""A gang that is to run, or run again: held, queued, retried by hand; where its next attempt may be placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.placement.fit import Shape
from holdfast.domain.policy.decide import and_tried
from holdfast.domain.record import evolve
from holdfast.domain.shortage import met
from holdfast.domain.workloads.dependencies import kept_waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Job, Run
    from holdfast.domain.workloads.spec import JobSpec


def held(job: Job, reason: str, now: float) -> Job:
    """Hold a waiting job."""
    return evolve(job, state=JobState.HELD, reason=reason or "held", retry_at=None, updated_at=now)


def released(spec: JobSpec, job: Job, now: float) -> Job:
    """Let a held job go on: it waits for what is left of what it waits for, or is pending."""
    return kept_waiting(job, spec.after, now) if spec.after and job.ready_at is None else queued(job, now)


def retried(job: Job, reason: str, now: float) -> Job:
    """Have a job that has ended or waits make another attempt, which counts against no limit.

    Of one that has ended it is as if no node had been tried; one that waits only waits no longer.
    """
    if job.terminal:
        job = evolve(job, avoid_nodes=(), tried=())
    job = queued(job, now)
    return evolve(job, reason=reason or "retried by hand", started_at=None, ended_at=None, cancel_requested=False)


def queued(job: Job, now: float) -> Job:
    """Make a job pending again: its hold was lifted, or its retry is due."""
    return evolve(job, state=JobState.QUEUED, reason="", retry_at=None, queued_at=now, updated_at=now)


def tried_by(job: Job, runs: Iterable[Run], failure: Failure | None) -> tuple[str, ...]:
    """Add the nodes of an attempt to those on which a job was tried before.

    They are those where a program of it began, or could not be started for another reason than a shortage there.
    """
    nodes = [run.node for run in runs if run.may_have_run]
    if failure is not None and (failure.started or met(failure) is None):
        nodes.append(failure.node or "")
    return and_tried(job.tried, *nodes)


def shape_of(job: Job, spec: JobSpec) -> Shape:
    """Return the shape of the job's next attempt."""
    return Shape(
        job.request,
        job.gang,
        tuple(sorted(spec.node_selector.items())),
        job.avoid_node,
        gpus=spec.gpus,
        avoid_devices=job.avoid_devices,
        avoid_nodes=frozenset(job.avoid_nodes),
    )
