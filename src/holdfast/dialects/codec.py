"""Canonical JSON of specifications and catalogue entries, for storing them; equal values give equal text.

What is read here was written here: it is trusted, and read fast.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.dialects.jobset.job import read_job_spec
from holdfast.dialects.jobset.wording import Notes
from holdfast.dialects.native.category import read_category_manifest, write_category
from holdfast.dialects.native.policy import read_policy
from holdfast.dialects.native.policy_text import write_policy
from holdfast.dialects.native.queue import read_queue_manifest, write_queue
from holdfast.dialects.native.settings import read_settings, write_settings
from holdfast.dialects.reading import Fields
from holdfast.domain.resources import Resources
from holdfast.domain.workloads.spec import DEFAULT_GRACE_S, DEFAULT_QUEUE, JobSpec, KubeJob
from holdfast.errors import Internal

if TYPE_CHECKING:
    from holdfast.domain.category import FailureCategory
    from holdfast.domain.job import Queue
    from holdfast.domain.policy.model import RetryPolicy, RetrySettings
    from holdfast.errors import Problem

T = TypeVar("T")
_CACHED = 16_384
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


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def write_spec(spec: JobSpec) -> dict[str, Any]:
    """Write a job as a manifest in its short form; what has its default is left out, except the essentials."""
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


def dump_spec(spec: JobSpec) -> str:
    """Write a job's specification as canonical JSON; it is a manifest too."""
    return _compact(write_spec(spec))


@lru_cache(maxsize=_CACHED)
def load_spec(text: str) -> JobSpec:
    """Read a specification written by ``dump_spec``; equal texts share one object."""
    value = json.loads(text)
    others = {attribute: value[field] for field, attribute, _ in _ONE_TO_ONE if field in value}
    return JobSpec(
        name=value["name"],
        command=tuple(value["command"]),
        queue=value.get("queue", DEFAULT_QUEUE),
        resources=_load_resources(value["resources"]),
        ports=tuple(value.get("ports", ())),
        retry_policies=tuple(value.get("retryPolicies", ())),
        inline_policies=tuple(load_policy(_compact(policy)) for policy in value.get("retry", ())),
        kube=_load_kube(value["kube"]) if "kube" in value else None,
        **others,
    )


def load_kube(text: str) -> KubeJob | None:
    """Read what a specification says of its pods; one without pods is not read at all."""
    return load_spec(text).kube if '"kube":' in text else None


def _load_kube(raw: dict[str, Any]) -> KubeJob:
    """Read the ``spec`` of a ``batch/v1`` Job that was accepted once, strictly or not."""
    notes = Notes(lenient=True)
    return KubeJob(read_job_spec(Fields(raw, "kube", notes.problems), notes).spec, raw)


def _load_resources(value: dict[str, Any]) -> Resources:
    cpu = value["cpu"]
    return Resources(int(cpu[:-1]) if isinstance(cpu, str) else cpu * 1000, value["memory"], value["gpu"])


def dump_policy(policy: RetryPolicy) -> str:
    """Write a policy with its name, without its revision, as canonical JSON."""
    return _compact({"name": policy.name, **write_policy(policy)})


@lru_cache(maxsize=_CACHED)
def load_policy(text: str) -> RetryPolicy:
    """Read a policy written by ``dump_policy``; its revision is 1."""
    problems: list[Problem] = []
    return _sound(read_policy(json.loads(text), path="", name=None, problems=problems), problems)


def dump_queue(queue: Queue) -> str:
    """Write a queue as canonical JSON."""
    return _compact({"metadata": {"name": queue.name}, "spec": write_queue(queue)})


def load_queue(text: str) -> Queue:
    """Read a queue written by ``dump_queue``."""
    problems: list[Problem] = []
    return _sound(read_queue_manifest(json.loads(text), path="", problems=problems), problems)


def dump_category(category: FailureCategory) -> str:
    """Write a failure category as canonical JSON."""
    return _compact({"metadata": {"name": category.name}, "spec": write_category(category)})


def load_category(text: str) -> FailureCategory:
    """Read a failure category written by ``dump_category``."""
    problems: list[Problem] = []
    return _sound(read_category_manifest(json.loads(text), path="", problems=problems), problems)


def dump_settings(settings: RetrySettings, default_policy: str | None) -> str:
    """Write the operator's settings as canonical JSON."""
    return _compact(write_settings(settings, default_policy))


def load_settings(text: str) -> tuple[RetrySettings, str | None]:
    """Read settings written by ``dump_settings``."""
    return read_settings(json.loads(text))


def _sound(value: T | None, problems: list[Problem]) -> T:
    if value is None:
        msg = "a stored record cannot be read"
        raise Internal(msg, problems=problems)
    return value
