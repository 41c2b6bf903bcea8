"""Reads the native short form of a JobSet: jobs by command, with limits that upstream lacks.

The rest is read as in upstream's manifest and becomes the same model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.failure_policy import RuleContext, read_failure_policy
from holdfast.dialects.jobset.job import ReadJob, compiled_program
from holdfast.dialects.jobset.manifest import read_coordinator, read_depends_on, read_network, read_success
from holdfast.dialects.jobset.pace import annotated_pace
from holdfast.dialects.jobset.pod_policy import read_failure_rules, read_success_rules
from holdfast.dialects.jobset.pod_template import ARMADA_POLICY, PodTemplate
from holdfast.dialects.jobset.set_checks import ReadGroup, check
from holdfast.dialects.jobset.values import count, one_of, or_default, whole
from holdfast.dialects.native.dependencies import read_dependencies
from holdfast.dialects.native.envelope import close_envelope, open_envelope, read_group
from holdfast.dialects.native.job import SHELL, read_env, read_labels, read_policy_names
from holdfast.dialects.native.notify import read_notify
from holdfast.dialects.native.resources import read_named
from holdfast.dialects.native.watching import read_watched
from holdfast.dialects.reading import Fields
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.domain.terms.settings import MOST_PRIORITY
from holdfast.domain.workloads.jobset.model import DEFAULT_GROUP, GROUP, JobSetSpec, ReplicatedJob, StartupOrder
from holdfast.domain.workloads.kubejob.model import (
    UNLIMITED,
    CompletionMode,
    KubeJobSpec,
    PodReplacement,
    RestartPolicy,
)
from holdfast.domain.workloads.kubejob.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes

MOST_JOBS = 1000
CONTAINER = "main"
"""The name of a job's only container in the short form."""


def read_native_jobset(value: Mapping[str, Any], *, path: str, notes: ManifestNotes) -> JobSetSpec | None:
    """Read a native JobSet.

    Returns:
        The set, or ``None`` when anything is wrong that cannot be forgiven.
    """
    opened = open_envelope(Fields(value, path, notes.problems))
    if opened.spec is None or opened.metadata is None:
        return None
    metadata, spec = opened.metadata, opened.spec
    groups = [_read_job(part, notes) for part in spec.mappings("jobs", most=MOST_JOBS)]
    names = [item.group.name for item in groups]
    reasons = {rule.job_reason for item in groups for rule in item.job.spec.failure_rules or ()}
    annotations = metadata.mapping("annotations", most=1000, longest=65_536)
    if group := read_group(spec):
        annotations[GROUP] = group
    if ARMADA_POLICY in annotations:
        notes.warn(
            metadata.at(f"annotations.{ARMADA_POLICY}"),
            "has no effect here",
            hint="name policies in retryPolicies of a job",
        )
    job_set_spec = JobSetSpec(
        name=opened.name or "",
        replicated_jobs=tuple(item.group for item in groups),
        success=read_success(spec, notes, names),
        failure=annotated_pace(
            read_failure_policy(spec, notes, RuleContext(names, reasons, extended=True)), metadata, annotations, notes
        ),
        startup=one_of(spec, notes, "startup", StartupOrder) or StartupOrder.ANY_ORDER,
        network=read_network(spec),
        coordinator=read_coordinator(spec),
        suspend=spec.flag("suspend"),
        ttl_s=spec.duration("ttl"),
        total_deadline_s=spec.duration("totalDeadline"),
        kill_timeout_s=spec.duration("killTimeout"),
        queue=spec.name("queue") or "",
        priority=spec.integer("priority", low=-MOST_PRIORITY, high=MOST_PRIORITY) or 0,
        labels=read_labels(metadata, "labels"),
        annotations=annotations,
        notify=read_notify(spec),
        after=read_dependencies(spec, is_array=False),
    )
    close_envelope(opened)
    check(job_set_spec, groups, notes, path=spec.path, native=True)
    return None if notes.problems else job_set_spec


def _read_job(fields: Fields, notes: ManifestNotes) -> ReadGroup:
    job = _read_pods(fields, notes)
    template = _read_template(fields, job.spec.restart_policy)
    watched = read_watched(fields, {"deadline": job.spec.active_deadline_s})
    program = compiled_program(template["spec"]["template"], notes, fields.path, Resources())
    group = ReplicatedJob(
        name=fields.name("name", required=True) or "",
        replicas=or_default(whole(fields, "replicas", low=0), 1),
        group_name=fields.name("groupName") or DEFAULT_GROUP,
        job=job.spec,
        program=evolve(program, stall=watched.stall, warning=watched.warning),
        template=template,
        depends_on=read_depends_on(fields, notes),
        max_restarts=count(fields, notes, "maxRestarts"),
        retry_policies=read_policy_names(fields),
        topology=fields.text("exclusiveTopology"),
    )
    fields.finish()
    return ReadGroup(group, fields.path, job)


def _read_pods(fields: Fields, notes: ManifestNotes) -> ReadJob:
    """Read the Job of a replicated job: by default Indexed, with one pod, and failed by its first failure."""
    parallelism = or_default(count(fields, notes, "parallelism"), 1)
    completions = or_default(count(fields, notes, "completions"), parallelism)
    per_index = count(fields, notes, "backoffLimitPerIndex")
    rules = read_failure_rules(fields, notes, containers={CONTAINER}, per_index=per_index is not None)
    limit = or_default(count(fields, notes, "backoffLimit"), 0 if per_index is None else UNLIMITED)
    replacement = one_of(fields, notes, "podReplacementPolicy", PodReplacement) or PodReplacement.FAILED
    restart = one_of(fields, notes, "restartPolicy", RestartPolicy) or RestartPolicy.NEVER
    if rules is not None and restart is not RestartPolicy.NEVER:
        notes.invalid(fields.at("restartPolicy"), restart.value, 'only "Never" is supported with podFailurePolicy')
    spec = KubeJobSpec(
        parallelism=parallelism,
        completions=completions,
        mode=CompletionMode.INDEXED,
        backoff_limit=limit,
        backoff_limit_per_index=per_index,
        max_failed_indexes=count(fields, notes, "maxFailedIndexes"),
        failure_rules=rules,
        success_rules=read_success_rules(fields, notes, completions=completions, indexed=True),
        replacement=replacement,
        active_deadline_s=fields.duration("deadline"),
        restart_policy=restart,
    )
    return ReadJob(spec, Program(), PodTemplate(frozenset({CONTAINER})), parallelism, completions, replacement, limit)


def _read_template(fields: Fields, restart: RestartPolicy) -> Mapping[str, Any]:
    """Expand the short form to a pod template."""
    command = fields.texts("command", most=10_000, longest=131_071)
    script = fields.text("shell", longest=131_071)
    if command and script:
        fields.problem("shell", "cannot be set together with command; set one of them")
    if not command and not script:
        fields.problem("command", "is required", hint='write command: [PROGRAM, ARGUMENT...] or shell: "..."')
    container: dict[str, Any] = {
        "name": CONTAINER,
        "command": command or [*SHELL, script],
        "env": [{"name": key, "value": value} for key, value in read_env(fields).items()],
        "resources": _read_resources(fields),
    }
    if image := fields.text("image"):
        container["image"] = image
    if place := fields.text("workingDir"):
        container["workingDir"] = place
    return {
        "spec": {
            "template": {
                "metadata": {"labels": read_labels(fields, "labels")},
                "spec": {
                    "restartPolicy": restart.value,
                    "nodeSelector": read_labels(fields, "nodeSelector"),
                    "terminationGracePeriodSeconds": or_default(fields.duration("grace"), 30.0),
                    "containers": [container],
                },
            }
        }
    }


def _read_resources(fields: Fields) -> dict[str, Any]:
    """Expand the resources of a job; its memory is both request and limit."""
    part = fields.nested("resources")
    if part is None:
        return {}
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    if (cpu := part.cpu("cpu")) is not None:
        requests["cpu"] = f"{cpu}m"
    if (memory := part.memory("memory")) is not None:
        requests["memory"] = limits["memory"] = memory
    gpu = part.integer("gpu", low=0, high=1_000_000)
    if gpu:
        requests["nvidia.com/gpu"] = gpu
    requests |= {name: f"{amount}m" for name, amount in read_named(part)}
    part.finish()
    return {"requests": requests, "limits": limits}
