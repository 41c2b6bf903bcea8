"""Turns accepted manifests into their stored forms: a set's canonical text and the specifications of its jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import Document
from holdfast.dialects.jobset.canonical import GIVEN_BY_SERVERS
from holdfast.domain.workloads.jobset.model import GROUP, PREFIX, QUEUE_LABEL
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec, KubeJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.reading import JobManifest
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.kubejob.program import Program

"""The annotation for the queue, in manifests without a field for it."""
SET_LABEL = f"{PREFIX}jobset-name"
GROUP_LABEL = f"{PREFIX}replicatedjob-name"


def dump_set(document: Document | Mapping[str, Any]) -> str:
    """Write a job set's manifest as canonical JSON: equal manifests give equal text.

    Fields that a server adds to an object (``status``, ``metadata.uid``, ...) are left out.
    """
    value = document.value if isinstance(document, Document) else document
    kept = {name: part for name, part in value.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {name: part for name, part in metadata.items() if name not in GIVEN_BY_SERVERS}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def child_spec(spec: JobSetSpec, group: ReplicatedJob) -> JobSpec:
    """Return the specification of a replicated job's jobs; all of them share its text."""
    labels = {**spec.labels, SET_LABEL: spec.name, GROUP_LABEL: group.name}
    return JobSpec(
        name=f"{spec.name}-{group.name}",
        queue=spec.queue_name,
        priority=spec.priority,
        labels=labels,
        retry_policies=group.retry_policies,
        **_described(group.program),
    )


def plain_job_spec(manifest: JobManifest) -> JobSpec:
    """Return the specification of a stand-alone ``batch/v1`` Job."""
    return JobSpec(
        name=manifest.name,
        queue=manifest.labels.get(QUEUE_LABEL) or DEFAULT_QUEUE,
        group=manifest.annotations.get(GROUP, ""),
        labels=manifest.labels,
        annotations=manifest.annotations,
        retry_policies=manifest.retry_policies,
        notify=manifest.notify,
        after=manifest.after,
        kube=KubeJob(manifest.spec, manifest.program, manifest.raw),
        **_described(manifest.program),
    )


def _described(program: Program) -> dict[str, Any]:
    return {
        "command": program.command,
        "env": program.shown_env(),
        "working_dir": program.working_dir,
        "resources": program.resources,
        "grace_s": program.grace_s,
        "stall": program.stall,
        "warning": program.warning,
        "node_selector": program.node_selector,
    }
