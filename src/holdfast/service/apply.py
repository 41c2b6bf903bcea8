"""Applies Kubernetes Jobs. Unlike other jobs they have unique names: an existing one is left alone or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.dialects.jobset.canonical import canonical_template, mapping, without_added
from holdfast.dialects.jobset.pod_template import RETRY_POLICIES
from holdfast.dialects.native.dependencies import DEPENDS_ON, ON_UNMET
from holdfast.dialects.native.notify import NOTIFY
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.jobset.model import GROUP
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.spec import KubeJob
from holdfast.errors import AlreadyExists, InvalidManifest, Problem
from holdfast.service.admission.finding import Everything
from holdfast.service.reshape import same_dependencies
from holdfast.service.steering.jobs import suspend_as

if TYPE_CHECKING:
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.steering.control import Control
    from holdfast.service.submit import Submitter, WrittenJob

_COMPILED = frozenset({RETRY_POLICIES, NOTIFY, GROUP, DEPENDS_ON, ON_UNMET})
"""Annotations that became fields of the specification."""


class AppliedJob(Struct, frozen=True):
    """The result of applying a Job."""

    job: Job
    result: str
    """``created``, ``suspended``, ``resumed`` or ``unchanged``."""
    warnings: tuple[Problem, ...] = ()


def apply_job(submitter: Submitter, control: Control[Job], written: WrittenJob) -> AppliedJob:
    """Submit a Kubernetes Job unless the newest one of its name is the same; only its ``suspend`` may change.

    Raises:
        InvalidManifest: It is not valid, or not a Kubernetes Job; with all problems.
        Refused: A limit of its queue could never hold it.
        AlreadyExists: Another Job of that name was submitted at the same time.
    """
    spec = written.spec
    if written.error is None and spec.kind != KUBEJOB:
        hint = "submit it; jobs in Holdfast's own format may share a name"
        raise InvalidManifest(problems=[Problem("apiVersion", "only batch/v1 Jobs can be applied", hint=hint)])
    existing, newest = (None, None) if written.error is not None else _find_same(submitter, spec)
    if existing is None:
        try:
            return AppliedJob(submitter.submit(written, newest=newest), "created", written.warnings)
        except AlreadyExists:  # another caller applied the same Job at the same time, and was first
            existing, _ = _find_same(submitter, spec)
            if existing is None:
                raise
    suspend = spec.kube is not None and spec.kube.spec.suspend
    changed = suspend_as(control, existing, suspend=suspend, caller=submitter.caller)
    result = ("suspended" if suspend else "resumed") if changed else "unchanged"
    return AppliedJob(existing, result, written.warnings)


def _find_same(submitter: Submitter, spec: JobSpec) -> tuple[Job | None, str]:
    """Return the caller's newest job of a name if it is the same, and the id of the newest of all."""
    newest = Everything(submitter.store).find_own(spec.name)
    job = newest if submitter.finder is None else submitter.finder.find_own(spec.name)
    same = job is not None and job.child is None and _is_same(load_spec(job.spec), spec)
    return (job if same else None), "" if newest is None else newest.id


def _is_same(left_spec: JobSpec, other: JobSpec) -> bool:
    """Whether two Kubernetes Jobs mean the same, however they are written, and apart from ``suspend``."""
    return same_dependencies(left_spec.after, other.after) and _canonical(left_spec) == _canonical(other)


def _canonical(spec: JobSpec) -> JobSpec:
    kube = spec.kube
    if kube is None:
        return spec
    template = mapping(kube.raw, "template")
    return evolve(
        spec,
        after=(),
        # A server gives a Job without labels those of its pods.
        labels=without_added(spec.labels) or without_added(mapping(template, "metadata", "labels")),
        annotations={name: text for name, text in without_added(spec.annotations).items() if name not in _COMPILED},
        # The program of the pods is compiled from the template.
        kube=KubeJob(evolve(kube.spec, suspend=True), Program(), canonical_template(template)),
    )
