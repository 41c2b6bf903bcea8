"""Reads any manifest of a job set or a Job, upstream's or native."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.dialects.jobset import job, manifest
from holdfast.dialects.jobset.job import annotated_policies, read_job_spec
from holdfast.dialects.jobset.manifest import read_jobset_manifest
from holdfast.dialects.jobset.native import read_native_jobset
from holdfast.dialects.jobset.pod_template import check_metadata
from holdfast.dialects.jobset.values import dns_1123_subdomain
from holdfast.dialects.native.dependencies import annotated_dependencies
from holdfast.dialects.native.envelope import API_VERSION, check_annotated_group, take_kind
from holdfast.dialects.native.notify import annotated_notify
from holdfast.dialects.reading import Fields
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.model import JobSetSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.domain.notifier import Notify
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.program import Program


class JobManifest(Struct, frozen=True):
    """A Job outside any set."""

    name: str
    spec: KubeJobSpec
    program: Program
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    raw: Mapping[str, Any]
    """Its ``spec`` as written."""
    retry_policies: tuple[str, ...] = ()
    notify: tuple[Notify, ...] = ()
    after: tuple[Dependency, ...] = ()


KubeManifest: TypeAlias = JobSetSpec | JobManifest


def _read_jobset(value: Mapping[str, Any], notes: ManifestNotes) -> JobSetSpec | None:
    return read_jobset_manifest(value, path="", notes=notes)


def _read_native(value: Mapping[str, Any], notes: ManifestNotes) -> JobSetSpec | None:
    return read_native_jobset(value, path="", notes=notes)


def _read_job(value: Mapping[str, Any], notes: ManifestNotes) -> JobManifest | None:
    root = Fields(value, "", notes.problems)
    take_kind(root)
    metadata = root.nested("metadata", required=True) or Fields({}, "metadata", notes.problems)
    check_metadata(metadata, notes)
    root.raw("status")
    spec = root.nested("spec", required=True)
    root.finish()
    name = metadata.text("name", required=True) or ""
    for message in dns_1123_subdomain(name):
        notes.invalid("metadata.name", name, message)
    if spec is None:
        return None
    read = read_job_spec(spec, notes)
    annotations = metadata.mapping("annotations", most=1000, longest=262_144)
    check_annotated_group(metadata, annotations)
    return JobManifest(
        name,
        read.spec,
        read.program,
        metadata.mapping("labels", most=1000),
        annotations,
        spec.value,
        annotated_policies(metadata, annotations),
        annotated_notify(metadata, annotations),
        annotated_dependencies(metadata, annotations),
    )


READERS: dict[tuple[str, str], Callable[[Mapping[str, Any], ManifestNotes], KubeManifest | None]] = {
    (manifest.API_VERSION, "JobSet"): _read_jobset,
    (job.API_VERSION, "Job"): _read_job,
    (API_VERSION, "JobSet"): _read_native,
}
"""Every kind that is read here, by ``apiVersion`` and ``kind``."""
