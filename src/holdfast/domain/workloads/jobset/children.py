"""The jobs of a set: which are previous, failed or active, and which to create or change."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.workloads.children import ChildPhase, CreateChild, ResizeChild, ResumeChild, SuspendChild
from holdfast.domain.workloads.jobset.model import PREFIX, RestartStrategy, coordinator_endpoint, job_key, job_name
from holdfast.domain.workloads.jobset.state import GroupStatus, JobSetState, backoff_keys

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.kubejob.program import PodPlan

_name, _group = attrgetter("name"), attrgetter("group")


class SortedJobs(Struct, gc=True):
    """The jobs of a set, sorted by what to do with them."""

    present: set[str] = field(default_factory=set)
    """All names in use."""
    by_group: Counter[str] = field(default_factory=Counter)
    """The number of jobs of each replicated job."""
    previous: list[Child] = field(default_factory=list)
    """Jobs of earlier attempts, which must go."""
    failed: list[Child] = field(default_factory=list)
    """Failed and not judged yet."""
    left: list[Child] = field(default_factory=list)
    """Failed, judged, and left failed."""
    succeeded: list[Child] = field(default_factory=list)
    active: list[Child] = field(default_factory=list)

    def delete_previous(self) -> None:
        """Remove the jobs of earlier attempts that are gone as soon as they are deleted, which frees their names."""
        for child in self.previous:
            if child.at_once:
                self.present.discard(child.name)
                self.by_group[child.group] -= 1
        self.previous = [child for child in self.previous if not child.at_once]


def is_previous(state: JobSetState, child: Child) -> bool:
    """Whether a job belongs to an attempt that is over."""
    return child.restart < state.restarts or child.job_restart < state.restarts_of(child.group, child.index)


def sort(spec: JobSetSpec, state: JobSetState, children: Iterable[Child]) -> SortedJobs:
    """Sort the observed jobs."""
    certain = spec.failure is not None and spec.failure.on_certain
    alone = {*state.job_restarts, *state.group_restarts}
    children = list(children)
    sorted_children, restarts, working, active = SortedJobs(), state.restarts, ChildPhase.ACTIVE, []
    sorted_children.present = set(map(_name, children))
    sorted_children.by_group = Counter(map(_group, children))
    for child in children:
        if child.restart < restarts or (child.group in alone and is_previous(state, child)):
            sorted_children.previous.append(child)
        elif child.phase is working and not (certain and child.certain):
            active.append(child)
        elif child.phase is ChildPhase.SUCCEEDED:
            sorted_children.succeeded.append(child)
        else:
            judged = child.name in state.left_failed and state.left_failed[child.name] == child.attempt
            (sorted_children.left if judged else sorted_children.failed).append(child)
    sorted_children.active = active
    return sorted_children


def group_statuses(spec: JobSetSpec, jobs: SortedJobs) -> tuple[GroupStatus, ...]:
    """Count the jobs of the current generation by replicated job."""
    needed: dict[str, int] = {}
    for group in spec.replicated_jobs:
        needed[group.name] = group.ready_pods
    ready: Counter[str] = Counter()
    active: Counter[str] = Counter()
    suspended: Counter[str] = Counter()
    for child in jobs.active:
        if child.suspended:
            suspended[child.group] += 1
        elif child.group in needed and child.succeeded_pods + child.ready_pods >= needed[child.group]:
            ready[child.group] += 1
        if child.active_pods:
            active[child.group] += 1
    succeeded = Counter(map(_group, jobs.succeeded))
    failed = Counter(map(_group, (*jobs.failed, *jobs.left)))
    statuses: tuple[GroupStatus, ...] = ()
    for name in needed:
        counts = (ready[name], succeeded[name], failed[name], active[name], suspended[name])
        statuses += (GroupStatus(name, *counts),)
    return statuses


class ChildrenToCreate(Struct, frozen=True):
    """The jobs to create."""

    orders: tuple[CreateChild, ...]
    missing: bool
    """Whether jobs that may run do not exist yet, whether created now or waiting."""


def create(
    spec: JobSetSpec, state: JobSetState, jobs: SortedJobs, allowed: Iterable[ReplicatedJob]
) -> ChildrenToCreate:
    """Create the jobs that are missing, may start, and whose names are free.

    A job keeps its name until it is gone. With ``BlockingRecreate`` nothing is created while any job of an earlier
    attempt exists. Jobs in back-off are not created.
    """
    blocked = bool(jobs.previous) and (
        spec.failure is not None and spec.failure.strategy is RestartStrategy.BLOCKING_RECREATE
    )
    missing, ready = False, []
    for group in allowed:
        if jobs.by_group.get(group.name, 0) >= group.replicas:
            continue
        for index in range(group.replicas):
            name = job_name(spec.name, group.name, index)
            if name in jobs.present:
                continue
            missing = True
            if blocked or not state.not_before.keys().isdisjoint(backoff_keys(group.name, name)):
                continue
            ready.append(
                CreateChild(
                    name=name,
                    group=group.name,
                    index=index,
                    global_index=spec.offsets[group.name] + index,
                    restart=state.restarts,
                    job_restart=state.restarts_of(group.name, index),
                    suspended=spec.suspend,
                    size=(group.job.parallelism, group.job.completions),
                )
            )
    return ChildrenToCreate(tuple(ready), missing)


def adjust(
    spec: JobSetSpec, jobs: SortedJobs, allowed: Container[str]
) -> list[ResizeChild | SuspendChild | ResumeChild]:
    """Resize jobs to their templates, suspend them with their set, and resume those that may start."""
    orders: list[ResizeChild | SuspendChild | ResumeChild] = []
    for child in jobs.active:
        group = spec.by_name.get(child.group)
        if group is not None and child.size is not None:
            size = (group.job.parallelism, group.job.completions)
            if child.size != size:
                orders.append(ResizeChild(child.name, *size))
        if spec.suspend and not child.suspended:
            orders.append(SuspendChild(child.name))
        elif child.suspended and child.group in allowed and not spec.suspend:
            orders.append(ResumeChild(child.name, child.group))
    return orders


def job_labels(spec: JobSetSpec, job: CreateChild, *, uid: str = "") -> dict[str, str]:
    """Return the labels of a job; its pods have the same, and both have them as annotations."""
    group = spec.by_name[job.group]
    before, members = spec.in_groups[job.group]
    labels = {
        "jobset-name": spec.name,
        "jobset-uid": uid,
        "replicatedjob-name": job.group,
        "replicatedjob-replicas": str(group.replicas),
        "job-index": str(job.index),
        "job-key": job_key(job.name),
        "job-global-index": str(job.global_index),
        "global-replicas": str(spec.replicas),
        "restart-attempt": str(job.restart),
        "job-restart-attempt": str(job.job_restart),
        "group-name": group.group_name,
        "group-replicas": str(members),
        "job-group-index": str(before + job.index),
    }
    if endpoint := coordinator_endpoint(spec):
        labels["coordinator"] = endpoint
    return {f"{PREFIX}{key}": value for key, value in labels.items()}


def pod_environment(spec: JobSetSpec, job: CreateChild, pod: int, *, uid: str) -> dict[str, str]:
    """Return the environment of the pod with a completion index; upstream sets only the index."""
    group = spec.by_name[job.group]
    before, members = spec.in_groups[job.group]
    variables = {
        "JOB_COMPLETION_INDEX": str(pod),
        "JOBSET_NAME": spec.name,
        "REPLICATED_JOB_NAME": job.group,
        "JOBSET_UID": uid,
        "JOB_INDEX": str(job.index),
        "JOB_KEY": job_key(job.name),
        "JOB_GLOBAL_INDEX": str(job.global_index),
        "JOBSET_RESTART_ATTEMPT": str(job.restart),
        "JOB_RESTART_ATTEMPT": str(job.job_restart),
        "GLOBAL_REPLICAS": str(spec.replicas),
        "REPLICATED_JOB_REPLICAS": str(group.replicas),
        "GROUP_NAME": group.group_name,
        "GROUP_REPLICAS": str(members),
        "JOB_GROUP_INDEX": str(before + job.index),
    }
    if endpoint := coordinator_endpoint(spec):
        variables["JOBSET_COORDINATOR"] = endpoint
    return variables


def plan_of(plan: PodPlan, spec: JobSetSpec, group: ReplicatedJob) -> PodPlan:
    """Return the plan of a set's pods, with the set's policies, topology and restart settings."""
    policy = spec.failure
    return evolve(
        plan,
        policies=group.retry_policies,
        topology=group.topology,
        in_place=policy is not None and policy.strategy is RestartStrategy.IN_PLACE,
        max_restarts=0 if policy is None else policy.max_restarts,
    )
