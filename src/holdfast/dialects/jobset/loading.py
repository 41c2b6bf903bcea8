"""Turns accepted manifests into what is stored and run: a set's canonical text, the specification of its jobs.

Decides how a job made of pods is described as a Holdfast job; what each pod runs is read from its template when it
starts (``program``).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import Document
from holdfast.dialects.jobset.program import read_program
from holdfast.dialects.jobset.reading import read_kube
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.names import PREFIX
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec, KubeJob
from holdfast.errors import Internal, InvalidManifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.program import Program
    from holdfast.dialects.jobset.reading import JobManifest
    from holdfast.domain.workloads.jobset.model import ReplicatedJob

QUEUE_LABEL = "holdfast.dev/queue"
"""Names the queue in manifests that have no field for it."""
SET_LABEL = f"{PREFIX}jobset-name"
GROUP_LABEL = f"{PREFIX}replicatedjob-name"
_CACHED = 1024
_GIVEN_BY_SERVERS = frozenset(
    {"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
)


def dump_set(document: Document | Mapping[str, Any]) -> str:
    """Write a job set's manifest as canonical JSON: equal manifests give equal text.

    What a server adds to an object (``status``, ``metadata.uid``, ...) is left out.
    """
    value = document.value if isinstance(document, Document) else document
    kept = {name: part for name, part in value.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {name: part for name, part in metadata.items() if name not in _GIVEN_BY_SERVERS}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=_CACHED)
def load_set(manifest: str, *, lenient: bool) -> JobSetSpec:
    """Read a stored manifest of a job set, of any kind there is; equal texts share one object.

    Args:
        manifest: As ``dump_set`` wrote it.
        lenient: Whether it was accepted leniently.

    Raises:
        Internal: It cannot be read; it was accepted when it was stored.
    """
    try:
        found = read_kube(json.loads(manifest), lenient=lenient).manifest
    except InvalidManifest as error:
        msg = "a stored job set cannot be read"
        raise Internal(msg, problems=error.problems) from error
    if not isinstance(found, JobSetSpec):
        msg = f"a stored job set is no job set: {type(found).__name__}"
        raise Internal(msg)
    return found


def with_suspend(manifest: str, *, suspend: bool) -> str:
    """Return a stored manifest as it is when the set is suspended, or resumed."""
    document = json.loads(manifest)
    document.setdefault("spec", {})["suspend"] = suspend
    return dump_set(document)


def queue_of(spec: JobSetSpec) -> str:
    """Return the queue a set's jobs wait in."""
    return spec.queue or spec.labels.get(QUEUE_LABEL) or DEFAULT_QUEUE


def pod_template(group: ReplicatedJob) -> Mapping[str, Any]:
    """Return the pod template of a replicated job, as written."""
    job = group.template.get("spec")
    pod = job.get("template") if isinstance(job, dict) else None
    return pod if isinstance(pod, dict) else {}


def child_spec(spec: JobSetSpec, group: ReplicatedJob) -> JobSpec:
    """Describe the jobs of a replicated job; one description for all of them, so that they can share its text."""
    labels = {**spec.labels, SET_LABEL: spec.name, GROUP_LABEL: group.name}
    return JobSpec(
        name=f"{spec.name}-{group.name}",
        queue=queue_of(spec),
        priority=spec.priority,
        labels=labels,
        retry_policies=group.retry_policies,
        **_described(read_program(pod_template(group), expand=False)),
    )


def plain_job_spec(manifest: JobManifest) -> JobSpec:
    """Describe a ``batch/v1`` Job of its own."""
    return JobSpec(
        name=manifest.name,
        queue=manifest.labels.get(QUEUE_LABEL) or DEFAULT_QUEUE,
        labels=manifest.labels,
        annotations=manifest.annotations,
        kube=KubeJob(manifest.spec, manifest.raw),
        **_described(read_program(manifest.template, expand=False)),
    )


def _described(program: Program) -> dict[str, Any]:
    return {
        "command": program.command,
        "env": program.env,
        "working_dir": program.working_dir,
        "resources": program.resources,
        "grace_s": program.grace_s,
        "node_selector": program.node_selector,
    }
