"""Everything known of a job: its attempts, runs and explained decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Internal
from holdfast.service.quarantined import known_pods, kube_of, owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.jobset.state import SetDecision
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord
    from holdfast.ports.store import Store
    from holdfast.service.explain import Explainer


class JobDetail(Struct, frozen=True):
    """A job with its attempts and runs; its decisions list the rules that were considered."""

    job: Job
    attempts: Sequence[Attempt]
    runs: Sequence[Run]
    pods: PodsOf | None = None
    """Set if the job's runs are pods."""
    owner: Workload | None = None
    """The work it is part of; ``None`` also if that cannot be read."""
    set_decisions: Mapping[int, SetDecision] = field(default_factory=dict)
    """Decisions of its job set about its attempts, by their numbers; empty in lists."""


class PodsOf(Struct, frozen=True):
    """The pods of a job."""

    record: KubeJobRecord | None
    """``None`` before its first one."""
    spec: KubeJobSpec | None
    """Their specification; ``None`` if it was deleted with the job set."""


def detail_of(job: Job, store: Store, explainer: Explainer) -> JobDetail:
    """Read a job's detail, without the decisions of its job set."""
    attempts, owner = store.attempts(job.id), owner_of(store, job.child)
    explanation = explainer.explained(job, attempts)
    return JobDetail(job, explanation, store.runs(job.id), _pods_of(job, store, owner), owner)


def _pods_of(job: Job, store: Store, owner: Workload | None) -> PodsOf | None:
    if job.of_set is None:
        kube = kube_of(job)
        return None if kube is None else PodsOf(known_pods(store, job), kube.spec)
    try:
        group = set_spec_of(owner).by_name.get(job.of_set.group) if isinstance(owner, JobSet) else None
    except Internal:
        group = None
    return PodsOf(known_pods(store, job), None if group is None else group.job)
