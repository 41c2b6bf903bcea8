"""Names, labels and environment of a set's jobs and pods, as upstream has them."""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import CreateJob

PREFIX = "jobset.sigs.k8s.io/"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"
COORDINATOR = f"{PREFIX}coordinator"
NAMESPACE = "default"


def job_name(set_name: str, group: str, index: int) -> str:
    """Name a job."""
    return f"{set_name}-{group}-{index}"


def pod_name(set_name: str, group: str, index: int, pod: int) -> str:
    """Name a pod; its host name, too."""
    return f"{set_name}-{group}-{index}-{pod}"


def subdomain(spec: JobSetSpec) -> str:
    """Name the domain of its pods' host names."""
    return spec.network.subdomain or spec.name


def pod_host(spec: JobSetSpec, group: str, index: int, pod: int) -> str:
    """Return the full host name of a pod."""
    return f"{pod_name(spec.name, group, index, pod)}.{subdomain(spec)}"


def coordinator_endpoint(spec: JobSetSpec) -> str | None:
    """Return the host name of the coordinator."""
    at = spec.coordinator
    return None if at is None else pod_host(spec, at.replicated_job, at.job_index, at.pod_index)


def global_index(spec: JobSetSpec, group: str, index: int) -> int:
    """Number a job over the whole set."""
    return spec.offsets[group] + index


def job_key(name: str) -> str:
    """Return a fixed-length key of a job: the SHA-1 of its namespace and name."""
    return sha1(f"{NAMESPACE}/{name}".encode(), usedforsecurity=False).hexdigest()


def labels(spec: JobSetSpec, job: CreateJob, *, uid: str = "") -> dict[str, str]:
    """Return the labels of a job, which its pods and the annotations of both repeat."""
    group = spec.by_name[job.group]
    before, members = spec.in_groups[job.group]
    found = {
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
        found["coordinator"] = endpoint
    return {f"{PREFIX}{key}": value for key, value in found.items()}


def environment(spec: JobSetSpec, job: CreateJob, pod: int) -> dict[str, str]:
    """Return a pod's environment; upstream sets only its completion index."""
    group = spec.by_name[job.group]
    found = {
        "JOB_COMPLETION_INDEX": str(pod),
        "JOBSET_NAME": spec.name,
        "REPLICATED_JOB_NAME": job.group,
        "JOB_INDEX": str(job.index),
        "JOB_GLOBAL_INDEX": str(job.global_index),
        "JOBSET_RESTART_ATTEMPT": str(job.restart),
        "JOB_RESTART_ATTEMPT": str(job.job_restart),
        "GLOBAL_REPLICAS": str(spec.replicas),
        "REPLICATED_JOB_REPLICAS": str(group.replicas),
    }
    if endpoint := coordinator_endpoint(spec):
        found["JOBSET_COORDINATOR"] = endpoint
    return found
