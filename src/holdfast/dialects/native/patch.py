"""Changes fields of an existing job by a JSON merge patch of its manifest (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.dialects.native.dependencies import FIELD
from holdfast.dialects.native.job import read_job_manifest
from holdfast.dialects.native.writing import write_job
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.settings import SETTINGS
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest, Problem

_ATTRIBUTES = {
    "command": ("command",),
    "shell": ("command",),
    "env": ("env", "secrets"),
    "workingDir": ("working_dir",),
    "resources": ("resources", "gpus"),
    "nodeSelector": ("node_selector",),
    "retryPolicies": ("retry_policies",),
    "retry": ("inline_policies",),
    FIELD: ("after",),
    **{setting.key: (setting.attribute,) for setting in SETTINGS if setting.changeable},
}
CHANGEABLE = tuple(_ATTRIBUTES)
"""The fields that can change after submission: none that decides its owner or its turn."""


def patched(spec: JobSpec, patch: Mapping[str, Any]) -> JobSpec:
    """Return a job with some fields changed.

    Args:
        spec: The job.
        patch: Fields of its manifest in the short form; ``null`` deletes a field, and a mapping is merged.

    Raises:
        InvalidManifest: The result is invalid, or a field cannot be changed; with every problem.
    """
    fixed = [name for name in patch if name not in _ATTRIBUTES]
    if fixed:
        raise InvalidManifest(
            problems=[
                Problem(
                    str(name), "cannot be changed", allowed=tuple(sorted(CHANGEABLE)), hint=closest(name, CHANGEABLE)
                )
                for name in fixed
            ]
        )
    if patch.get(FIELD):
        hint = "submit the job again to have it wait for something else"
        raise InvalidManifest(problems=[Problem(FIELD, "can be removed, but not changed", hint=hint)])
    written = write_job(spec)
    base = {"name": "patched", "command": ["unchanged"]} | {name: written[name] for name in patch if name in written}
    if "shell" in patch:
        del base["command"]
    problems: list[Problem] = []
    read = read_job_manifest(_merged(base, patch), path="", problems=problems)
    if not isinstance(read, JobSpec):
        raise InvalidManifest(problems=problems)
    changed = {attribute: getattr(read, attribute) for name in patch for attribute in _ATTRIBUTES[name]}
    return evolve(spec, **changed)


def _merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            inner = merged.get(name)
            merged[name] = _merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged
