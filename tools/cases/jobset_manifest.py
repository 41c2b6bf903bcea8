"""Expands the compact job sets of case files into manifests, and reads them the way users' manifests are read."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.reading import JobManifest
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.errors import InvalidManifest
from tools.cases.kube_reading import read_kube

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from tools.cases.results import Case

MAX_INT = 2**31 - 1
_COUNTED = re.compile(r"(\d+) .*")


def jobset_manifest(case: Case) -> dict[str, Any]:
    """Write a case's job set out in full."""
    compact = case["jobset"]
    spec = copy.deepcopy(dict(compact.get("spec", {})))
    groups = [*spec.get("replicatedJobs", []), *_unlisted_groups(case, spec)]
    strategy = spec.get("failurePolicy", {}).get("restartStrategy")
    in_place = strategy == "InPlaceRestart" and case.get("kind") != "validation"
    spec["replicatedJobs"] = [_group(group, in_place=in_place) for group in groups]
    metadata: dict[str, Any] = {"name": compact.get("name", "js")}
    if "annotations" in compact:
        metadata["annotations"] = compact["annotations"]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _unlisted_groups(case: Case, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List replicated jobs that only failed jobs of a case name; upstream's unit tests leave them out of the set."""
    listed = {group["name"] for group in spec.get("replicatedJobs", [])}
    steps = [step for event in case["event"] for step in (event if isinstance(event, list) else [event])]
    found: dict[str, dict[str, Any]] = {}
    for step in steps:
        name = step.get("replicatedJob") or ("" if listed else "g")
        if step.get("do") == "jobFailed" and name and name not in listed:
            # Names of replicated jobs must be names of objects, which those of upstream's unit tests are not.
            found[group_name(name)] = {"name": group_name(name), "replicas": 1}
    return list(found.values())


def group_name(name: str) -> str:
    """Make a valid name of a replicated job's name in a unit test."""
    return name.lower()


def _group(compact: Mapping[str, Any], *, in_place: bool) -> dict[str, Any]:
    group = {key: value for key, value in compact.items() if key != "job"}
    job = dict(compact.get("job", {}))
    if "completionMode" not in job and "completions" not in job:
        job["completions"] = job.get("parallelism", 1)
    if in_place:
        job = {"backoffLimit": MAX_INT, "podReplacementPolicy": "Failed", **job}
    return {**group, "template": {"spec": job_spec(job)}}


def job_spec(compact: Mapping[str, Any], *, restart_policy: str | None = None) -> dict[str, Any]:
    """Write a case's Job out in full."""
    own = {"containers", "initContainers", "restartPolicy", "image", "backoff", "template"}
    spec = {key: _counted(key, copy.deepcopy(value)) for key, value in compact.items() if key not in own}
    pod: dict[str, Any] = {"containers": [_container(name, compact) for name in _containers(compact)]}
    policy = compact.get("restartPolicy", restart_policy)
    if "podFailurePolicy" in compact:
        policy = policy or "Never"
    if policy is not None:
        pod["restartPolicy"] = policy
    return {**spec, "template": {"spec": pod}}


def _container(name: str, compact: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "image": compact.get("image", "bash:latest"), "command": ["true"]}


def _containers(compact: Mapping[str, Any]) -> list[str]:
    """Name the containers: as listed, else those the pod failure policy names."""
    if "containers" in compact:
        return list(compact["containers"])
    rules = compact.get("podFailurePolicy", {}).get("rules", [])
    listed = rules if isinstance(rules, list) else []
    named = [(rule.get("onExitCodes") or {}).get("containerName") for rule in listed]
    return list(dict.fromkeys(name for name in named if name)) or ["main"]


def _counted(key: str, value: object) -> object:
    """Replace descriptions such as ``"21 valid rules"`` by as many."""
    if isinstance(value, dict):
        return {name: _counted(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_counted("", item) for item in value]
    match = _COUNTED.fullmatch(value) if isinstance(value, str) else None
    if match is None or key not in {"rules", "onPodConditions", "values"}:
        return value
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    one: Mapping[str, object] = {"rules": rule, "onPodConditions": {"type": "DisruptionTarget", "status": "True"}}
    return [one.get(key, number) for number in range(1, int(match[1]) + 1)]


def job_manifest(case: Case) -> dict[str, Any]:
    """Write a case's plain Job out in full."""
    spec = job_spec(case["jobset"]["job"], restart_policy="Never")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mypod"}, "spec": spec}


def read_jobset(manifest: Mapping[str, Any]) -> JobSetSpec:
    """Read a set strictly, else leniently: as far as upstream accepts it, it must run.

    Raises:
        InvalidManifest: It is refused either way.
    """
    try:
        found = read_kube(manifest).manifest
    except InvalidManifest:
        found = read_kube(manifest, lenient=True).manifest
    if not isinstance(found, JobSetSpec):
        msg = "not a JobSet"
        raise TypeError(msg)
    return found


def read_job(case: Case) -> KubeJobSpec:
    """Read a case's plain Job."""
    found = read_kube(job_manifest(case)).manifest
    if not isinstance(found, JobManifest):
        msg = "not a Job"
        raise TypeError(msg)
    return found.spec
