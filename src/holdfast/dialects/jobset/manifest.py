"""Reads JobSet manifests (``jobset.x-k8s.io/v1alpha2``) with upstream's checks and messages, and a few more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.failure_policy import RuleContext, read_failure_policy
from holdfast.dialects.jobset.job import IN_A_SET, annotated_policies, read_job_spec, read_managed_by
from holdfast.dialects.jobset.pace import annotated_pace, warn_of_annotated
from holdfast.dialects.jobset.pod_template import check_metadata
from holdfast.dialects.jobset.set_checks import ReadGroup, check
from holdfast.dialects.jobset.values import count, one_of, or_default, whole
from holdfast.dialects.native.dependencies import annotated_dependencies, refuse_annotated
from holdfast.dialects.native.envelope import check_annotated_group, take_kind
from holdfast.dialects.native.notify import annotated_notify
from holdfast.dialects.reading import Fields
from holdfast.domain.workloads.jobset.model import (
    DEFAULT_GROUP,
    EXCLUSIVE_TOPOLOGY,
    CoordinatorPod,
    DependencyStatus,
    DependsOn,
    JobSetSpec,
    Network,
    Operator,
    ReplicatedJob,
    StartupOrder,
    SuccessPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes

API_VERSION = "jobset.x-k8s.io/v1alpha2"
MOST_REPLICATED_JOBS = 1000
MOST_DEPENDENCIES = 5
MOST_CLAIM_POLICIES = 50


def read_jobset_manifest(value: Mapping[str, Any], *, path: str, notes: ManifestNotes) -> JobSetSpec | None:
    """Read a JobSet.

    Returns:
        The set, or ``None`` when anything is wrong that cannot be forgiven.
    """
    root = Fields(value, path, notes.problems)
    take_kind(root)
    metadata = root.nested("metadata", required=True) or Fields({}, root.at("metadata"), notes.problems)
    check_metadata(metadata, notes)
    root.raw("status")
    spec = root.nested("spec", required=True)
    root.finish()
    if spec is None:
        return None
    spec_read = _read_spec(metadata, spec, notes)
    return None if notes.problems else spec_read


def _read_spec(metadata: Fields, spec: Fields, notes: ManifestNotes) -> JobSetSpec:
    name = metadata.text("name", required=True) or ""
    annotations = metadata.mapping("annotations", most=1000, longest=262_144)
    check_annotated_group(metadata, annotations)
    topology = annotations.get(EXCLUSIVE_TOPOLOGY)
    groups = [_read_group(part, notes, topology) for part in spec.mappings("replicatedJobs", most=MOST_REPLICATED_JOBS)]
    names = [group.group.name for group in groups]
    reasons = {rule.job_reason for group in groups for rule in group.job.spec.failure_rules or ()}
    job_set_spec = JobSetSpec(
        name=name,
        replicated_jobs=tuple(group.group for group in groups),
        success=read_success(spec, notes, names),
        failure=annotated_pace(
            read_failure_policy(spec, notes, RuleContext(names, reasons)), metadata, annotations, notes
        ),
        startup=_read_startup(spec, notes),
        network=read_network(spec),
        coordinator=read_coordinator(spec),
        suspend=spec.flag("suspend"),
        managed_by=read_managed_by(spec, notes),
        ttl_s=_seconds(count(spec, notes, "ttlSecondsAfterFinished")),
        labels=metadata.mapping("labels", most=1000),
        annotations=annotations,
        volume_claims=_read_claims(spec),
        notify=annotated_notify(metadata, annotations),
        after=annotated_dependencies(metadata, annotations),
    )
    spec.finish()
    check(job_set_spec, groups, notes, path=spec.path)
    return job_set_spec


def _seconds(value: int | None) -> float | None:
    return None if value is None else float(value)


def _read_group(fields: Fields, notes: ManifestNotes, topology: str | None) -> ReadGroup:
    template = fields.nested("template", required=True) or Fields({}, fields.at("template"), notes.problems)
    metadata = template.nested("metadata")
    if metadata:
        check_metadata(metadata, notes)
    own = metadata.mapping("annotations", most=1000) if metadata else {}
    if metadata:
        refuse_annotated(metadata, own)
        warn_of_annotated(metadata, own, notes)
    job_fields = template.nested("spec", required=True) or Fields({}, template.at("spec"), notes.problems)
    template.finish()
    job = read_job_spec(job_fields, notes, IN_A_SET)
    group = ReplicatedJob(
        name=fields.text("name", required=True) or "",
        replicas=_read_replicas(fields, notes),
        group_name=fields.text("groupName") or DEFAULT_GROUP,
        job=job.spec,
        program=job.program,
        template=template.value,
        depends_on=read_depends_on(fields, notes),
        topology=own.get(EXCLUSIVE_TOPOLOGY, topology),
        retry_policies=annotated_policies(metadata, own) if metadata else (),
    )
    fields.finish()
    return ReadGroup(group, fields.path, job)


def _read_replicas(fields: Fields, notes: ManifestNotes) -> int:
    value = or_default(whole(fields, "replicas"), 1)
    if value < 0:
        path = fields.at("replicas")
        notes.invalid(path, value, f"{path} in body should be greater than or equal to 0")
        return 0
    return value


def read_depends_on(fields: Fields, notes: ManifestNotes) -> tuple[DependsOn, ...]:
    """Read ``dependsOn`` of a replicated job."""
    parts = fields.mappings("dependsOn", most=MOST_REPLICATED_JOBS)
    if len(parts) > MOST_DEPENDENCIES:
        notes.too_many(fields.at("dependsOn"), len(parts), MOST_DEPENDENCIES)
    dependencies = []
    for part in parts:
        name = part.text("name", required=True) or ""
        if part.raw("status") is None:
            notes.required(part.at("status"), 'valid values: "Ready", "Complete"')
        status = one_of(part, notes, "status", DependencyStatus) or DependencyStatus.READY
        part.finish()
        dependencies.append(DependsOn(name, status))
    return tuple(dependencies)


def read_success(spec: Fields, notes: ManifestNotes, names: Collection[str]) -> SuccessPolicy:
    """Read ``successPolicy``."""
    part = spec.nested("successPolicy")
    if part is None:
        return SuccessPolicy()
    targets = part.texts("targetReplicatedJobs", most=MOST_REPLICATED_JOBS) or []
    for place, name in enumerate(targets):
        if name not in names:
            message = f"invalid replicatedJob name '{name}' does not appear in .spec.ReplicatedJobs"
            notes.error(f"{part.at('targetReplicatedJobs')}[{place}]", message)
    operator = one_of(part, notes, "operator", Operator) or Operator.ALL
    part.finish()
    return SuccessPolicy(operator, tuple(dict.fromkeys(targets)))


def _read_startup(spec: Fields, notes: ManifestNotes) -> StartupOrder:
    part = spec.nested("startupPolicy")
    if part is None:
        return StartupOrder.ANY_ORDER
    order = one_of(part, notes, "startupPolicyOrder", StartupOrder) or StartupOrder.ANY_ORDER
    part.finish()
    return order


def read_network(spec: Fields) -> Network:
    """Read ``network``."""
    part = spec.nested("network")
    if part is None:
        return Network()
    network = Network(
        hostnames=part.flag("enableDNSHostnames", default=True),
        subdomain=part.text("subdomain") or "",
        publish_not_ready=part.flag("publishNotReadyAddresses", default=True),
    )
    part.finish()
    return network


def read_coordinator(spec: Fields) -> CoordinatorPod | None:
    """Read ``coordinator``."""
    part = spec.nested("coordinator")
    if part is None:
        return None
    coordinator = CoordinatorPod(
        part.text("replicatedJob", required=True) or "",
        or_default(whole(part, "jobIndex"), 0),
        or_default(whole(part, "podIndex"), 0),
    )
    part.finish()
    return coordinator


def _read_claims(spec: Fields) -> tuple[Mapping[str, Any], ...]:
    parts = spec.mappings("volumeClaimPolicies", most=MOST_CLAIM_POLICIES)
    return tuple(part.value for part in parts)
