"""Reads the manifest of a rollout: how many, and the template of a Kubernetes Job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import dump_spec
from holdfast.dialects.manifests import read_one
from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.reading import Fields
from holdfast.errors import InvalidManifest, Problem
from tests.kinds.rollout.model import RolloutSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1000
_TEMPLATE = "spec.template"


def read_rollout(value: Mapping[str, Any]) -> tuple[str, RolloutSpec]:
    """Return the name of a rollout and what it should be.

    Raises:
        InvalidManifest: With every problem found.
    """
    problems: list[Problem] = []
    written = {name: part for name, part in value.items() if name != "status"}  # as it is shown
    opened = open_envelope(Fields(written, "", problems))
    replicas = opened.spec.integer("replicas", low=0, high=MOST) if opened.spec else None
    template = opened.spec.raw("template", required=True) if opened.spec else None
    close_envelope(opened)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "replica"}, "spec": {"template": template}}
    found = read_one(job)
    if template is not None:
        problems += found.problems
    if problems or found.manifest is None:
        raise InvalidManifest(problems=problems)
    return opened.name or "", RolloutSpec(1 if replicas is None else replicas, dump_spec(found.manifest))
