"""Checks across the parts of a set: names, sizes, dependencies, coordinator, volumes, restart strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.jobset.values import TOO_LONG, dns_1035_label, dns_1123_subdomain, label_value
from holdfast.dialects.jobset.wording import shown
from holdfast.domain.policy.model import SetAction
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.model import (
    COORDINATOR,
    NAMESPACE,
    RestartStrategy,
    StartupOrder,
    coordinator_endpoint,
    job_name,
    pod_name,
)
from holdfast.domain.workloads.kubejob.model import UNLIMITED, PodReplacement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.dialects.jobset.job import ReadJob
    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob

MOST_JOBS = 1_000_000
"""The most jobs of one set; upstream has no such limit."""
MOST_REPLICAS_TO_RESTART = 1024
"""Upstream's limit on its lists of restarts of single jobs."""
LONGEST_CLAIM = 253
_GROUP_TOO_LONG = ".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
_SUBDOMAIN_TOO_LONG = ".spec.network.subdomain is too long, must be less than 63 characters"
_NAME_TOO_LONG = "JobSet name is too long, {} names generated for this JobSet will exceed 63 characters"


class ReadGroup(Struct, frozen=True):
    """A replicated job, as the checks across the set need it."""

    group: ReplicatedJob
    path: str
    job: ReadJob


def check(
    spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes, *, path: str, native: bool = False
) -> None:
    """Check a set; limits of upstream's own objects do not apply to the native form."""
    _check_group_names(groups, notes)
    _check_names(spec, groups, notes)
    _check_sizes(groups, notes, path)
    _check_dependencies(spec, groups, notes, path)
    _check_subdomain(spec, notes, f"{path}.network.subdomain")
    _check_coordinator(spec, groups, notes, f"{path}.coordinator")
    _check_restart_strategy(spec, groups, notes)
    if not native:
        _check_single_restarts(spec, notes, path)
    _check_claims(spec, groups, notes, path)


def _check_group_names(groups: Sequence[ReadGroup], notes: ManifestNotes) -> None:
    seen: set[str] = set()
    for group in groups:
        if group.group.name in seen:
            notes.duplicate(f"{group.path}.name", group.group.name)
        seen.add(group.group.name)
        for message in dns_1035_label(group.group.group_name):
            text = _GROUP_TOO_LONG if TOO_LONG in message else message
            notes.invalid(f"{group.path}.groupName", group.group.group_name, text)


def _check_names(spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes) -> None:
    """Validate the set's own name, then the names derived from it."""
    wrong = dns_1035_label(spec.name) if spec.name else []
    for message in wrong:
        notes.invalid("metadata.name", spec.name, _NAME_TOO_LONG.format("job") if TOO_LONG in message else message)
    for group in () if wrong else groups:
        _check_generated_names(spec, group, notes)


def _check_generated_names(spec: JobSetSpec, group: ReadGroup, notes: ManifestNotes) -> None:
    """Check the longest names of jobs and pods; upstream's pods have five more random characters."""
    last = max(group.group.replicas - 1, 0)
    longest = job_name(spec.name, group.group.name, last)
    wrong = dns_1035_label(longest)
    for message in wrong:
        notes.invalid(f"{group.path}.name", longest, _NAME_TOO_LONG.format("job") if TOO_LONG in message else message)
    if wrong or not group.job.spec.indexed or not group.job.completions:
        return
    longest_pod = f"{pod_name(spec.name, group.group.name, last, group.job.completions - 1)}-abcde"
    for message in dns_1035_label(longest_pod):
        # Only a cluster's pods have the suffix: an example of the document itself is too long by it.
        text = _NAME_TOO_LONG.format("pod") if TOO_LONG in message else message
        notes.forgivable(f"{group.path}.name", f"Invalid value: {shown(longest)}: {text}")


def _check_sizes(groups: Sequence[ReadGroup], notes: ManifestNotes, path: str) -> None:
    for group in groups:
        if group.job.spec.parallelism * group.group.replicas > UNLIMITED:
            notes.error(
                group.path,
                f"the product of replicas and parallelism must not exceed {UNLIMITED} for replicatedJob "
                f"'{group.group.name}'",
            )
    total = sum(group.group.replicas for group in groups)
    if total > MOST_JOBS:
        notes.error(f"{path}.replicatedJobs", f"asks for {total} jobs; at most {MOST_JOBS} are allowed in one set")


def _check_dependencies(spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes, path: str) -> None:
    earlier: set[str] = set()
    for place, group in enumerate(groups):
        if group.group.depends_on and not place:
            notes.error(f"{group.path}.dependsOn", "DependsOn can't be set for the first ReplicatedJob")
        for number, dependency in enumerate(group.group.depends_on):
            if place and dependency.name not in earlier:
                hint = "a replicatedJob can depend on those before it in the list"
                message = f"replicatedJob: {group.group.name} cannot depend on replicatedJob: {dependency.name}"
                notes.error(f"{group.path}.dependsOn[{number}].name", message, hint=hint)
        earlier.add(group.group.name)
    if spec.startup is StartupOrder.IN_ORDER and any(group.group.depends_on for group in groups):
        notes.error(path, "StartupPolicy and DependsOn APIs are mutually exclusive")


def _check_subdomain(spec: JobSetSpec, notes: ManifestNotes, path: str) -> None:
    value = spec.network.subdomain
    if not value:
        return
    for message in dns_1123_subdomain(value):
        notes.invalid(path, value, message)
    for message in dns_1035_label(value):
        notes.invalid(path, value, _SUBDOMAIN_TOO_LONG if TOO_LONG in message else message)


def _check_coordinator(spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes, path: str) -> None:
    at = spec.coordinator
    if at is None:
        return
    group = next((group for group in groups if group.group.name == at.replicated_job), None)
    where = f"for replicatedJob {at.replicated_job}"
    if group is None:
        notes.error(path, f"coordinator replicatedJob {at.replicated_job} does not exist")
    elif not 0 <= at.job_index < group.group.replicas:
        notes.error(path, f"coordinator job index {at.job_index} is invalid {where}")
    elif not group.job.spec.indexed or group.job.completions is None:
        message = "job for coordinator pod must be indexed completion mode, and completions number must be set"
        notes.error(path, message)
    elif not 0 <= at.pod_index < group.job.completions:
        notes.error(path, f"coordinator pod index {at.pod_index} is invalid {where} job index {at.job_index}")
    endpoint = coordinator_endpoint(spec) or ""
    if wrong := label_value(endpoint):
        notes.error(
            path,
            f'spec will lead to invalid label value "{endpoint}" for coordinator label "{COORDINATOR}" '
            f"(long JobSet / ReplicatedJob / SubDomain name?): {', '.join(wrong)}",
        )


def _check_restart_strategy(spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes) -> None:
    if spec.failure is None or spec.failure.strategy is not RestartStrategy.IN_PLACE:
        return
    for group in groups:
        job, path, subject = group.job, f"{group.path}.template.spec", f"replicatedJob {group.group.name}"
        enabled = "when in-place restart is enabled"
        if job.backoff_limit != UNLIMITED:
            message = f"{subject}: must be set to {UNLIMITED} (MaxInt32) {enabled}"
            notes.invalid(f"{path}.backoffLimit", job.backoff_limit, message)
        if job.replacement != PodReplacement.FAILED:
            message = f"{subject}: must be set to {PodReplacement.FAILED} {enabled}"
            notes.invalid(f"{path}.podReplacementPolicy", job.replacement, message)
        if job.completions is None or job.completions != job.parallelism:
            message = f"{subject}: completions and parallelism must be set and equal to each other {enabled}"
            notes.invalid(f"{path}.completions", job.completions, message)


def _check_single_restarts(spec: JobSetSpec, notes: ManifestNotes, path: str) -> None:
    single = {SetAction.RESTART_JOB, SetAction.RESTART_JOB_UNCOUNTED}
    rules = spec.failure.rules if spec.failure else ()
    too_large = any(group.replicas > MOST_REPLICAS_TO_RESTART for group in spec.replicated_jobs)
    if too_large and any(rule.action in single for rule in rules):
        notes.forgivable(
            f"{path}.failurePolicy.rules",
            "JobSet cannot have a failure policy rule with RestartJob or RestartJobAndIgnoreMaxRestarts action and a "
            f"replicated job with replicas > {MOST_REPLICAS_TO_RESTART}",
            hint="Holdfast itself has no such limit: a native JobSet, or a lenient reading, does without it",
        )


def _check_claims(spec: JobSetSpec, groups: Sequence[ReadGroup], notes: ManifestNotes, path: str) -> None:
    seen: set[str] = set()
    for at, metadata in _claims(spec.volume_claims, f"{path}.volumeClaimPolicies"):
        where, name = f"{at}.name", str(metadata.get("name", ""))
        if metadata.get("namespace") not in (None, "", NAMESPACE):
            notes.not_supported(f"{at}.namespace", metadata["namespace"], [NAMESPACE])
        if name in seen:
            notes.invalid(where, name, "names must be unique for VolumeClaimPolicies template")
        seen.add(name)
        for message in dns_1123_subdomain(name):
            notes.invalid(where, name, message)
        if len(f"{name}-{spec.name}") > LONGEST_CLAIM:
            notes.invalid(where, name, "VolumeClaimPolicies template name is too long")
        _check_mounts(groups, notes, name, path)


def _claims(policies: Sequence[Mapping[str, object]], path: str) -> Iterator[tuple[str, dict[str, object]]]:
    """List the templates' metadata, each with its path."""
    for place, policy in enumerate(policies):
        templates = policy.get("templates")
        for number, template in enumerate(templates if isinstance(templates, list) else ()):
            metadata = template.get("metadata") if isinstance(template, dict) else None
            yield f"{path}[{place}].templates[{number}].metadata", metadata if isinstance(metadata, dict) else {}


def _check_mounts(groups: Sequence[ReadGroup], notes: ManifestNotes, name: str, path: str) -> None:
    for group in groups:
        for place, volume in enumerate(group.job.pod.volumes):
            if volume == name:
                where = f"{group.path}.template.spec.template.spec.volumes[{place}].name"
                conflict = f"volume name conflicts with VolumeClaimPolicy template name: {name}"
                notes.invalid(where, volume, conflict)
    if not any(name in group.job.pod.mounts for group in groups):
        message = f"replicatedJob containers don't have a matching volumeMount: {name} from VolumeClaimPolicies"
        notes.error(f"{path}.replicatedJobs", f"Invalid value: {message}")
