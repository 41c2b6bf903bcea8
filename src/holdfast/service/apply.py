"""Applies Kubernetes Jobs, which have a name of their own, unlike other jobs: the one there is is left or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.errors import AlreadyExists, InvalidManifest, Problem
from holdfast.service.admission.finding import Everything
from holdfast.service.steering.jobs import suspend_as

if TYPE_CHECKING:
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.steering.control import Control
    from holdfast.service.submit import Submitter, WrittenJob


class AppliedJob(Struct, frozen=True):
    """What became of a Job that was applied."""

    job: Job
    result: str
    """``created``, ``suspended``, ``resumed`` or ``unchanged``."""
    warnings: tuple[Problem, ...] = ()


def apply_job(submitter: Submitter, control: Control[Job], written: WrittenJob) -> AppliedJob:
    """Submit a Kubernetes Job unless the newest one of its name is the same; only ``suspend`` of that may change.

    Raises:
        InvalidManifest: It is not valid, or not a Kubernetes Job; with all problems.
        Refused: A limit of its queue could never hold it.
        AlreadyExists: Another one of its name was submitted at the same time.
    """
    spec = written.spec
    if written.error is None and spec.kind != KUBEJOB:
        hint = "submit it; jobs in Holdfast's own form may share a name"
        raise InvalidManifest(problems=[Problem("apiVersion", "only batch/v1 Jobs are applied", hint=hint)])
    there, newest = (None, None) if written.error is not None else _there(submitter, spec)
    if there is None:
        try:
            return AppliedJob(submitter.submit(written, newest=newest), "created", written.warnings)
        except AlreadyExists:  # whoever applied the same at the same time was first
            there, _ = _there(submitter, spec)
            if there is None:
                raise
    suspend = spec.kube is not None and spec.kube.spec.suspend
    changed = suspend_as(control, there, suspend=suspend, by=submitter.by)
    result = ("suspended" if suspend else "resumed") if changed else "unchanged"
    return AppliedJob(there, result, written.warnings)


def _there(submitter: Submitter, spec: JobSpec) -> tuple[Job | None, str]:
    """Return the newest job of a name that is one's own, if it is the same; and the id of the newest of all."""
    newest = Everything(submitter.store).find_own(spec.name)
    job = newest if submitter.finder is None else submitter.finder.find_own(spec.name)
    same = job is not None and job.child is None and _suspended(load_spec(job.spec)) == _suspended(spec)
    return (job if same else None), "" if newest is None else newest.id


def _suspended(spec: JobSpec) -> JobSpec:
    """Return a specification as if it were suspended, to compare the rest.

    What it waits for is compared as its annotations say it: the other is looked up once, when this is submitted.
    """
    kube = spec.kube
    if kube is None:
        return spec
    return evolve(
        spec, after=(), kube=evolve(kube, spec=evolve(kube.spec, suspend=True), raw={**kube.raw, "suspend": True})
    )
