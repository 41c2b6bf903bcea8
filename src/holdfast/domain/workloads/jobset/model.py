"""The validated specification of a job set, and the names of its jobs and pods.

Fields and defaults are upstream's (``jobset.x-k8s.io/v1alpha2``), unless marked as beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import sha1
from typing import Any

from holdfast.domain.notifier import Notify
from holdfast.domain.policy.model import Backoff, SetRule
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.dependencies import Dependency, waits_for
from holdfast.domain.workloads.kubejob.model import KubeJobSpec
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.spec import DEFAULT_QUEUE

CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
"""The ``managedBy`` of Holdfast's sets; a set managed by another controller is left alone."""
DEFAULT_GROUP = "default"
QUEUE_LABEL = "holdfast.dev/queue"
"""The label that names the queue in manifests written for Kubernetes."""
GROUP = "holdfast.dev/group"
"""The annotation that names the group."""


class RestartStrategy(StrEnum):
    """How a new generation of jobs replaces the old one."""

    RECREATE = "Recreate"
    """Each job restarts as soon as its own old attempt is gone; generations of different jobs may overlap."""
    BLOCKING_RECREATE = "BlockingRecreate"
    """Nothing starts until every job of the old generation is gone."""
    IN_PLACE = "InPlaceRestart"
    """Programs restart behind a barrier and keep their places."""


class Operator(StrEnum):
    """How many jobs must succeed."""

    ALL = "All"
    ANY = "Any"


class StartupOrder(StrEnum):
    """The order in which replicated jobs start."""

    ANY_ORDER = "AnyOrder"
    IN_ORDER = "InOrder"


class DependencyStatus(StrEnum):
    """The status of another replicated job that one waits for."""

    READY = "Ready"
    """Each of its jobs is ready or has ended."""
    COMPLETE = "Complete"
    """Each of its jobs has succeeded."""


class DependsOn(Struct, frozen=True):
    """One dependency on an earlier replicated job."""

    name: str
    status: DependencyStatus


class ReplicatedJob(Struct, frozen=True, kw_only=True):
    """A template of jobs."""

    name: str
    replicas: int = 1
    group_name: str = DEFAULT_GROUP
    job: KubeJobSpec = field(default_factory=KubeJobSpec)
    program: Program = field(default_factory=Program)
    template: Mapping[str, Any] = field(default_factory=dict)
    """The ``JobTemplateSpec`` as written: metadata, pod template, containers."""
    depends_on: tuple[DependsOn, ...] = ()
    max_restarts: int | None = None
    """Beyond upstream: counted restarts that jobs of this template may cause; ``None`` is no limit of its own."""
    retry_policies: tuple[str, ...] = ()
    """Beyond upstream: named policies that may restart a failed pod before its set sees the failure."""
    topology: str | None = None
    """Node label whose value is a domain that each of its jobs has exclusively."""

    @property
    def ready_pods(self) -> int:
        """The number of ready pods that make one of its jobs ready."""
        done = self.job.completions
        return self.job.parallelism if done is None else min(self.job.parallelism, done)


class SuccessPolicy(Struct, frozen=True):
    """When the set is complete."""

    operator: Operator = Operator.ALL
    targets: tuple[str, ...] = ()
    """Replicated jobs that count; empty is all."""


class RestartPace(Struct, frozen=True):
    """Beyond upstream: how uncounted restarts are delayed if they follow each other quickly."""

    at_once: int = 20
    """How many restarts of a set, a replicated job or a job are not delayed."""
    backoff: Backoff = Backoff(initial_s=1.0, max_s=300.0, multiplier=2.0)
    """The delay of further ones, or a program that cannot start would be restarted hundreds of times a second."""
    within_s: float = 60.0
    """A restart follows quickly if what was restarted fails again within this time."""
    reset_after_s: float = 600.0
    """After running for this long, restarts are counted from 0 again."""


class FailurePolicy(Struct, frozen=True, kw_only=True):
    """What happens when a job has failed; a set without one fails on its first failed job."""

    max_restarts: int = 0
    """How many counted restarts the set may have, over all actions that count."""
    strategy: RestartStrategy = RestartStrategy.RECREATE
    rules: tuple[SetRule, ...] = ()
    backoff: Backoff | None = None
    """Beyond upstream: the delay before a restart; upstream has none."""
    pace: RestartPace | None = RestartPace()
    """The pace of uncounted restarts without their own back-off; ``None`` delays none, like upstream."""
    window_s: float | None = None
    """Beyond upstream: only counted restarts within the last ``window_s`` seconds count against ``max_restarts``."""
    reset_after_s: float | None = None
    """Beyond upstream: the whole budget is restored after all jobs have been ready for this long."""
    on_certain: bool = False
    """Beyond upstream: act when a job is certain to fail, rather than when its last pod is gone."""


class Network(Struct, frozen=True):
    """How pods find each other."""

    hostnames: bool = True
    subdomain: str = ""
    """Empty is the set's name."""
    publish_not_ready: bool = True


class CoordinatorPod(Struct, frozen=True):
    """The pod whose address is given to every other pod."""

    replicated_job: str
    job_index: int = 0
    pod_index: int = 0


class JobSetSpec(Struct, frozen=True, kw_only=True, dict=True, gc=True):
    """A validated job set."""

    name: str
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    success: SuccessPolicy = SuccessPolicy()
    failure: FailurePolicy | None = None
    startup: StartupOrder = StartupOrder.ANY_ORDER
    network: Network = Network()
    coordinator: CoordinatorPod | None = None
    suspend: bool = False
    managed_by: str | None = None
    ttl_s: float | None = None
    total_deadline_s: float | None = None
    """Beyond upstream: from the set's first start, over all restarts."""
    kill_timeout_s: float | None = None
    """Beyond upstream: how long a job may take to stop before it is killed."""
    queue: str = ""
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    volume_claims: tuple[Mapping[str, Any], ...] = ()
    notify: tuple[Notify, ...] = ()
    """Beyond upstream: its notifiers, besides those of its queue."""
    after: tuple[Dependency, ...] = ()
    """Beyond upstream: the dependencies that must be met before it creates any job."""

    @property
    def queue_name(self) -> str:
        """The queue its jobs wait in."""
        return self.queue or self.labels.get(QUEUE_LABEL) or DEFAULT_QUEUE

    @property
    def group(self) -> str:
        """The group that it and its jobs are in."""
        return self.annotations.get(GROUP, "")

    def waits_for(self, met: Sequence[int]) -> str:
        """Say what it still waits for, given the positions of met dependencies; empty if nothing."""
        return "" if len(met) == len(self.after) else waits_for(self.after, met)

    @cached_property
    def by_name(self) -> Mapping[str, ReplicatedJob]:
        """Its replicated jobs by name."""
        return {group.name: group for group in self.replicated_jobs}

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        """The global index of each replicated job's first job."""
        by_group, total = {}, 0
        for group in self.replicated_jobs:
            by_group[group.name] = total
            total += group.replicas
        return by_group

    @cached_property
    def in_groups(self) -> Mapping[str, tuple[int, int]]:
        """By replicated job: how many jobs of its group come before its own, and how many the group has."""
        totals: dict[str, int] = {}
        before = {}
        for replicated_job in self.replicated_jobs:
            before[replicated_job.name] = totals.get(replicated_job.group_name, 0)
            totals[replicated_job.group_name] = before[replicated_job.name] + replicated_job.replicas
        return {
            replicated_job.name: (before[replicated_job.name], totals[replicated_job.group_name])
            for replicated_job in self.replicated_jobs
        }

    @cached_property
    def replicas(self) -> int:
        """How many jobs it has in all."""
        return sum(group.replicas for group in self.replicated_jobs)


PREFIX = "jobset.sigs.k8s.io/"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
COORDINATOR = f"{PREFIX}coordinator"
NAMESPACE = "default"


def job_name(set_name: str, group: str, index: int) -> str:
    """Return the name of a job."""
    return f"{set_name}-{group}-{index}"


def clash(job: str, new: str, holder: str) -> str:
    """Say that two sets would have a job of the same name, as ``a`` with ``b-c`` and ``a-b`` with ``c`` would."""
    return f"job set {new!r} would have a job {job!r}, and so has job set {holder!r}"


def pod_name(set_name: str, group: str, index: int, pod: int) -> str:
    """Return the name of a pod, which is also its host name."""
    return f"{set_name}-{group}-{index}-{pod}"


def subdomain(spec: JobSetSpec) -> str:
    """Return the domain of its pods' host names."""
    return spec.network.subdomain or spec.name


def pod_host(spec: JobSetSpec, group: str, index: int, pod: int) -> str:
    """Return the full host name of a pod."""
    return f"{pod_name(spec.name, group, index, pod)}.{subdomain(spec)}"


def coordinator_endpoint(spec: JobSetSpec) -> str | None:
    """Return the host name of the coordinator."""
    at = spec.coordinator
    return None if at is None else pod_host(spec, at.replicated_job, at.job_index, at.pod_index)


def job_key(name: str) -> str:
    """Return a fixed-length key of a job: the SHA-1 of its namespace and name."""
    return sha1(f"{NAMESPACE}/{name}".encode(), usedforsecurity=False).hexdigest()
