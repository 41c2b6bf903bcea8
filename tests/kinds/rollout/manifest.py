"""Reads the manifest of a rollout: how many, and the template of a Kubernetes Job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.compiled.codec import dump_spec
from holdfast.dialects.manifests import read_one
from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.reading import Fields
from holdfast.domain.workloads.spec import JobSpec
from tests.kinds.rollout.model import RolloutSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes

MOST = 1000


class RolloutManifest(NamedTuple):
    """A rollout as it is written."""

    name: str
    spec: RolloutSpec


def read(value: Mapping[str, Any], notes: ManifestNotes) -> RolloutManifest | None:
    """Read a rollout; what is wrong with it is noted."""
    written = {name: part for name, part in value.items() if name != "status"}  # as it is shown
    opened = open_envelope(Fields(written, "", notes.problems))
    replicas = opened.spec.integer("replicas", low=0, high=MOST) if opened.spec else None
    suspended = opened.spec.flag("suspend") if opened.spec else False
    template = opened.spec.raw("template", required=True) if opened.spec else None
    close_envelope(opened)
    if template is None:
        return None
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "replica"}, "spec": {"template": template}}
    found = read_one(job)
    notes.problems += found.problems
    if opened.name is None or not isinstance(found.manifest, JobSpec):
        return None
    spec = RolloutSpec(1 if replicas is None else replicas, dump_spec(found.manifest), suspended)
    return RolloutManifest(opened.name, spec)
