"""Which jobs of a set to create, suspend, resume and resize now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.model import RestartStrategy
from holdfast.domain.workloads.jobset.names import job_name
from holdfast.domain.workloads.jobset.state import CreateJob, ResizeJob, ResumeJob, SuspendJob, backoff_keys

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.children import Sorted
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.jobset.startup import Startup
    from holdfast.domain.workloads.jobset.state import JobSetState


@dataclass(frozen=True, slots=True)
class Created:
    """The jobs to create."""

    orders: tuple[CreateJob, ...]
    missing: bool
    """Whether jobs that may run do not exist yet, whether created now or waiting."""


def create(spec: JobSetSpec, state: JobSetState, jobs: Sorted, startup: Startup) -> Created:
    """Create the jobs that are missing, may start, and whose names are free.

    A job keeps its name until it has gone. With ``BlockingRecreate`` nothing is created while any job of a past
    attempt is there; nothing in back-off is created.
    """
    blocking = spec.failure is not None and spec.failure.strategy is RestartStrategy.BLOCKING_RECREATE
    missing = [one for group in startup.allowed for one in _missing(spec, state, jobs, group)]
    if blocking and jobs.previous:
        return Created((), bool(missing))
    if not state.not_before:
        return Created(tuple(missing), bool(missing))
    ready = tuple(one for one in missing if not _waits(state, one))
    return Created(ready, bool(missing))


def _missing(spec: JobSetSpec, state: JobSetState, jobs: Sorted, group: ReplicatedJob) -> list[CreateJob]:
    if jobs.by_group.get(group.name, 0) >= group.replicas:
        return []
    offset, present = spec.offsets[group.name], jobs.present
    names = (job_name(spec.name, group.name, index) for index in range(group.replicas))
    return [
        CreateJob(
            name=name,
            group=group.name,
            index=index,
            global_index=offset + index,
            restart=state.restarts,
            job_restart=state.restarts_of(group.name, index),
            suspended=spec.suspend,
        )
        for index, name in enumerate(names)
        if name not in present
    ]


def _waits(state: JobSetState, job: CreateJob) -> bool:
    return any(key in state.not_before for key in backoff_keys(job.group, job.name))


def suspend(jobs: Sorted) -> list[SuspendJob]:
    """Stop every job that is not suspended yet."""
    return [SuspendJob(child.name) for child in jobs.active if not child.suspended]


def resume(jobs: Sorted, startup: Startup) -> list[ResumeJob]:
    """Resume every suspended job that may start."""
    allowed = {group.name for group in startup.allowed}
    return [ResumeJob(child.name, child.group) for child in jobs.active if child.suspended and child.group in allowed]


def resize(spec: JobSetSpec, jobs: Sorted) -> list[ResizeJob]:
    """Give running jobs the size their templates have now."""
    orders = []
    for child in jobs.active:
        group = spec.by_name.get(child.group)
        if group is None or child.size is None:
            continue
        wanted = (group.job.parallelism, group.job.completions)
        if child.size != wanted:
            orders.append(ResizeJob(child.name, *wanted))
    return orders
