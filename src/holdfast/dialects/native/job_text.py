"""Writes a job as a manifest in its short form, for people; defaults are left out, except for essential fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.policy_text import write_policy
from holdfast.domain.workloads.spec import DEFAULT_GRACE_S

if TYPE_CHECKING:
    from holdfast.domain.resources import Resources
    from holdfast.domain.workloads.spec import JobSpec

_ONE_TO_ONE: tuple[tuple[str, str, Any], ...] = (
    ("priority", "priority", 0),
    ("labels", "labels", {}),
    ("annotations", "annotations", {}),
    ("env", "env", {}),
    ("workingDir", "working_dir", None),
    ("gang", "gang", 1),
    ("deadline", "deadline_s", None),
    ("totalDeadline", "total_deadline_s", None),
    ("schedulingTimeout", "scheduling_timeout_s", None),
    ("grace", "grace_s", DEFAULT_GRACE_S),
    ("nodeSelector", "node_selector", {}),
)


def write_job(spec: JobSpec) -> dict[str, Any]:
    """Write a job; a job of pods also has the ``spec`` of its ``batch/v1`` Job as it was written."""
    written: dict[str, Any] = {
        "name": spec.name,
        "queue": spec.queue,
        "command": list(spec.command),
        "resources": _write_resources(spec.resources),
    }
    for field, attribute, default in _ONE_TO_ONE:
        value = getattr(spec, attribute)
        if value != default:
            written[field] = dict(value) if isinstance(default, dict) else value
    if spec.ports:
        written["ports"] = list(spec.ports)
    if spec.retry_policies:
        written["retryPolicies"] = list(spec.retry_policies)
    if spec.inline_policies:
        written["retry"] = [{"name": policy.name, **write_policy(policy)} for policy in spec.inline_policies]
    if spec.kube is not None:
        written["kube"] = dict(spec.kube.raw)
    return written


def _write_resources(resources: Resources) -> dict[str, Any]:
    whole, rest = divmod(resources.cpu_m, 1000)
    return {"cpu": f"{resources.cpu_m}m" if rest else whole, "memory": resources.memory, "gpu": resources.gpu}
