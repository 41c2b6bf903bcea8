"""Tells where a job made of pods stands: its pods, its Kubernetes conditions, and what its job set decided about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_kube
from holdfast.domain.workloads.jobset.explain import explain
from holdfast.domain.workloads.jobset.state import SetDecision
from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.domain.workloads.kubejob.sync import CONTROLLER
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.job import ChildOf, Job
    from holdfast.domain.workloads.kubejob.model import KubeJobState
    from holdfast.ports.store import Store

_PART = 1000


def pod_lines(store: Store, job: Job) -> tuple[str, ...]:
    """Tell of a job's pods and its set in sentences; of a job without either nothing."""
    kube = load_kube(job.spec)
    if job.child is None and kube is None:
        return ()
    if job.child is None and kube is not None and kube.spec.managed_by not in {None, CONTROLLER}:
        return (f"It is managed by {kube.spec.managed_by}, so nothing of it is run here.",)
    known = store.kube_jobs([job.id]).get(job.id)
    pods = () if known is None else tuple(_pods(known.state))
    return (*pods, *(() if job.child is None else _of_set(store, job, job.child)))


def _pods(state: KubeJobState) -> Iterator[str]:
    counts = (("active", state.active), ("succeeded", state.succeeded), ("failed", state.failed))
    told = [f"{count} {word}" for word, count in counts if count]
    if told:
        yield f"Pods: {', '.join(told)}."
    if state.failed_indexes:
        yield f"Failed indexes: {format_indexes(state.failed_indexes)}."
    for condition in (state.finished,) if state.finished else state.conditions:
        if condition.status:
            why = ": ".join(part for part in (condition.reason, condition.message) if part)
            yield f"It is {condition.type}: {why}." if why else f"It is {condition.type}."


def _of_set(store: Store, job: Job, at: ChildOf) -> tuple[str, ...]:
    try:
        name = store.job_set(at.set_id).name
    except NotFound:
        return ("Its job set was deleted.",)
    last = _last_decision(store, at.set_id, job.name)
    about = f"It is job {at.index} of replicated job {at.group} of job set {name}."
    return (*(explain(last) if last else ()), about, f"The whole set is explained by: holdfast why jobset {name}")


def _last_decision(store: Store, set_id: str, name: str) -> SetDecision | None:
    found, after = None, 0
    while part := store.set_log(set_id, after=after, limit=_PART):
        found = next((e.what for e in reversed(part) if isinstance(e.what, SetDecision) and e.what.job == name), found)
        after = part[-1].seq
    return found
