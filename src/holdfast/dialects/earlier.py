"""Compiles what earlier releases stored; used by ``db upgrade`` only.

Before version 1 a job was stored as a manifest in its short form, a job of pods with the ``spec`` of its ``batch/v1``
Job, a job set as its manifest alone, an entry of the catalogue as the part of its manifest that matters.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.compiled.codec import VERSION, OperatorSettings, dump_entry, dump_set_spec, dump_spec
from holdfast.dialects.jobset.job import API_VERSION as BATCH_VERSION
from holdfast.dialects.jobset.loading import plain_job_spec
from holdfast.dialects.jobset.reading import JobManifest, read_kube
from holdfast.dialects.native.catalogue import read_queue_manifest, read_settings
from holdfast.dialects.native.category import read_category_manifest
from holdfast.dialects.native.policy import read_policy
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import HoldfastError, UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.errors import Problem

T = TypeVar("T")
_SAME = ("name", "queue", "priority", "labels", "annotations", "env", "gang")
_METADATA = ("name", "labels", "annotations")
_RENAMED = {
    "workingDir": "working_dir",
    "deadline": "deadline_s",
    "totalDeadline": "total_deadline_s",
    "schedulingTimeout": "scheduling_timeout_s",
    "grace": "grace_s",
    "nodeSelector": "node_selector",
}


def upgrade_job(text: str) -> str:
    """Bring a job's stored specification to this version.

    Raises:
        UnreadableSpec: It cannot be read any more.
    """
    return _attempt(_upgrade_job, text)


def upgrade_set(manifest: str) -> str:
    """Compile a job set's stored manifest.

    Raises:
        UnreadableSpec: It cannot be read any more.
    """
    return _attempt(_compile_set, manifest)


def upgrade_entry(kind: str, text: str, *, revision: int = 1) -> str:
    """Compile an entry of the catalogue: a ``policy``, a ``queue``, a ``category`` or the ``settings``.

    Args:
        kind: Which of them.
        text: What was stored.
        revision: A policy's, which was beside it.

    Raises:
        UnreadableSpec: It cannot be read any more.
    """
    return _attempt(lambda given: _compile_entry(kind, json.loads(given), revision), text)


def _attempt(upgrade: Callable[[str], str], text: str) -> str:
    try:
        return upgrade(text)
    except HoldfastError as error:
        why = "; ".join([error.message, *map(str, error.problems)])
        raise UnreadableSpec(why) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UnreadableSpec(why) from error


def _upgrade_job(text: str) -> str:
    value = json.loads(text)
    version = value.get("version", 0)
    while version < VERSION:
        value, version = _STEPS[version](value), version + 1
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _compile_job(value: dict[str, Any]) -> dict[str, Any]:
    """Version 0 to 1."""
    spec = _batch_job(value) if "kube" in value else _plain_job(value)
    compiled: dict[str, Any] = json.loads(dump_spec(spec))
    return compiled


def _plain_job(value: Mapping[str, Any]) -> JobSpec:
    given = {name: value[name] for name in _SAME if name in value}
    given |= {attribute: value[name] for name, attribute in _RENAMED.items() if name in value}
    asked = value.get("resources", {"cpu": 1, "memory": 0, "gpu": 0})
    cpu = asked["cpu"]
    return JobSpec(
        command=tuple(value["command"]),
        resources=Resources(int(cpu[:-1]) if isinstance(cpu, str) else cpu * 1000, asked["memory"], asked["gpu"]),
        ports=tuple(value.get("ports", ())),
        retry_policies=tuple(value.get("retryPolicies", ())),
        inline_policies=tuple(map(_policy, value.get("retry", ()))),
        **given,
    )


def _policy(value: Mapping[str, Any]) -> RetryPolicy:
    """Read a policy; its rules without a name were called by their place then."""
    found, rules = _read(partial(read_policy, name=None), value), value.get("rules") or ()
    named = [bool(rule.get("name")) for rule in rules]
    placed = (rule if named[place] else evolve(rule, name=f"rule{place}") for place, rule in enumerate(found.rules))
    return evolve(found, rules=tuple(placed))


def _compile_entry(kind: str, value: Mapping[str, Any], revision: int) -> str:
    if kind == "policy":
        return dump_entry(evolve(_policy(value), revision=revision))
    if kind == "queue":
        return dump_entry(_read(read_queue_manifest, value))
    if kind == "category":
        return dump_entry(_read(read_category_manifest, value))
    return dump_entry(OperatorSettings(*read_settings(value)))


def _read(reader: Callable[..., T | None], value: Mapping[str, Any]) -> T:
    problems: list[Problem] = []
    found = reader(value, path="", problems=problems)
    if found is None:
        msg = "it is not valid"
        raise UnreadableSpec(msg, problems=problems)
    return found


def _batch_job(value: Mapping[str, Any]) -> JobSpec:
    metadata = {name: value.get(name, {}) for name in ("labels", "annotations")}
    document = {
        "apiVersion": BATCH_VERSION,
        "kind": "Job",
        "metadata": {"name": value["name"], **metadata},
        "spec": value["kube"],
    }
    found = read_kube(document, lenient=True).manifest
    if not isinstance(found, JobManifest):
        msg = "it is no Job"
        raise UnreadableSpec(msg)
    return plain_job_spec(found)


def _compile_set(manifest: str) -> str:
    """Read a manifest that was accepted before, strictly or leniently; fields that were not checked are left out."""
    value = json.loads(manifest)
    known = {name: part for name, part in value["metadata"].items() if name in _METADATA}
    found = read_kube({**value, "metadata": known}, lenient=True).manifest
    if not isinstance(found, JobSetSpec):
        msg = "it is no job set"
        raise UnreadableSpec(msg)
    return dump_set_spec(found)


_STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {0: _compile_job}
"""From each earlier version of a job's specification to the next."""
