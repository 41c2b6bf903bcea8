"""Reads what a local process needs from a pod template: program, environment, resources; notes what has no effect.

Engines that run real pods take the template itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.quantity import kube_count, kube_cpu, kube_memory
from holdfast.domain.resources import Resources
from holdfast.domain.workloads.jobset.model import NAMESPACE
from holdfast.domain.workloads.kubejob.program import DEFAULT_GRACE_S, Program, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

GPU = "nvidia.com/gpu"
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_OWN = {"metadata.name": Variable("", "POD_NAME", told=True), "metadata.namespace": Variable("", NAMESPACE)}
_TOLD = {
    "batch.kubernetes.io/job-name": "JOB_NAME",
    "batch.kubernetes.io/job-completion-index": "JOB_COMPLETION_INDEX",
    "jobset.sigs.k8s.io/jobset-name": "JOBSET_NAME",
    "jobset.sigs.k8s.io/jobset-uid": "JOBSET_UID",
    "jobset.sigs.k8s.io/replicatedjob-name": "REPLICATED_JOB_NAME",
    "jobset.sigs.k8s.io/replicatedjob-replicas": "REPLICATED_JOB_REPLICAS",
    "jobset.sigs.k8s.io/job-index": "JOB_INDEX",
    "jobset.sigs.k8s.io/job-key": "JOB_KEY",
    "jobset.sigs.k8s.io/job-global-index": "JOB_GLOBAL_INDEX",
    "jobset.sigs.k8s.io/global-replicas": "GLOBAL_REPLICAS",
    "jobset.sigs.k8s.io/restart-attempt": "JOBSET_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/job-restart-attempt": "JOB_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/group-name": "GROUP_NAME",
    "jobset.sigs.k8s.io/group-replicas": "GROUP_REPLICAS",
    "jobset.sigs.k8s.io/job-group-index": "JOB_GROUP_INDEX",
    "jobset.sigs.k8s.io/coordinator": "JOBSET_COORDINATOR",
}
"""Labels and annotations upstream gives a pod, and the variables with the same values here."""
_RESOURCES = ("cpu", "memory", GPU)
_STORAGE = "ephemeral-storage"
_NO_PROBES = "nothing looks whether it works but its exit"
_AS_WE = "it runs as the user that Holdfast runs as"
_POD_IGNORED = {
    "affinity": "nodes are chosen by nodeSelector alone",
    "nodeName": "nodes are chosen by nodeSelector alone",
    "topologySpreadConstraints": "nodes are chosen by nodeSelector alone",
    "schedulingGroup": "the pods of a job start as there are places",
    "priorityClassName": "it has the priority of its job set, or none",
    "priority": "it has the priority of its job set, or none",
    "resourceClaims": "no devices are claimed here",
    "securityContext": _AS_WE,
}
_CONTAINER_IGNORED = {
    "livenessProbe": _NO_PROBES,
    "startupProbe": _NO_PROBES,
    "readinessProbe": "it is ready when it runs",
    "lifecycle": "nothing is called when it starts or stops",
    "restartPolicy": "its pod's counts",
    "restartPolicyRules": "its pod's restartPolicy counts",
    "volumeDevices": "programs share the machine's devices",
    "securityContext": _AS_WE,
}
"""What would change what happens in a cluster, and why it does not here."""
_UPSTREAMS = ("jobset.sigs.k8s.io/", "batch.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """A pod template that was read, and notes about it."""

    program: Program
    has_command: bool = True
    """Whether it names a program; else its command has only arguments for its image's entry point."""
    notes: tuple[str, ...] = ()
    """What the template asks for and a local process does not have."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with amounts it asks for; it gets the default instead."""
    gated: bool = False
    """Whether its pods may start only when somebody else says so."""


def read_program(template: Mapping[str, Any]) -> ReadProgram:
    """Read a pod template (``metadata`` and ``spec``) that has been validated."""
    pod, metadata = _mapping(template, "spec"), _mapping(template, "metadata")
    containers = [one for one in pod.get("containers") or [] if isinstance(one, dict)]
    first = containers[0] if containers else {}
    notes: list[str] = []
    env = tuple(_environment(first, metadata, notes))
    command = [*(first.get("command") or []), *(first.get("args") or [])]
    if first.get("image"):
        notes.append(f"image {first['image']} is ignored: the command runs as a local process")
    ignored = [f"container {one.get('name')}" for one in containers[1:]]
    ignored += [f"init container {one.get('name')}" for one in pod.get("initContainers") or []]
    notes += [f"{one} is ignored" for one in ignored]
    notes += _volumes(pod, first)
    for part, told in ((pod, _POD_IGNORED), (first, _CONTAINER_IGNORED)):
        notes += [f"{name} is ignored: {why}" for name, why in told.items() if part.get(name)]
    if any(_STORAGE in _mapping(_mapping(first, "resources"), kind) for kind in ("requests", "limits")):
        notes.append(f"{_STORAGE} is ignored: files have no limit")
    unreadable: list[str] = []
    resources, memory_limit = _resources((_mapping(first, "resources"), _mapping(pod, "resources")), unreadable)
    program = Program(
        container=str(first.get("name", "main")),
        command=tuple(str(word) for word in command),
        env=env,
        working_dir=first.get("workingDir") or None,
        resources=resources,
        memory_limit=memory_limit,
        grace_s=DEFAULT_GRACE_S if (grace_s := _seconds(pod, "terminationGracePeriodSeconds")) is None else grace_s,
        deadline_s=_seconds(pod, "activeDeadlineSeconds"),
        node_selector=_mapping(pod, "nodeSelector"),
    )
    gated = bool(pod.get("schedulingGates"))
    return ReadProgram(program, bool(first.get("command")), tuple(notes), tuple(unreadable), gated)


def _volumes(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """Say of each volume that it is ignored, and whose files the program has where it would be mounted."""
    mounts: dict[str, list[str]] = {}
    for mount in container.get("volumeMounts") or []:
        mounts.setdefault(str(mount.get("name")), []).append(str(mount.get("mountPath")))
    for name in dict.fromkeys([*(str(one.get("name")) for one in pod.get("volumes") or []), *mounts]):
        paths = ", ".join(mounts.get(name, ()))
        yield f"volume {name} is ignored" + (f": the program reads and writes the machine's own {paths}" * bool(paths))


def _seconds(pod: Mapping[str, Any], name: str) -> float | None:
    value = pod.get(name)
    return None if value is None else float(value)


def _mapping(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _environment(container: Mapping[str, Any], metadata: Mapping[str, Any], notes: list[str]) -> Iterator[Variable]:
    for variable in container.get("env") or []:
        name, source = str(variable.get("name")), variable.get("valueFrom")
        if source is None:
            yield Variable(name, str(variable.get("value") or ""))
            continue
        known = _downward(name, source, metadata)
        if known is None:
            notes.append(f"environment variable {name} is left out: its value comes from the cluster")
        else:
            yield known
    if container.get("envFrom"):
        notes.append("envFrom is ignored: its values come from the cluster")


def _downward(name: str, source: object, metadata: Mapping[str, Any]) -> Variable | None:
    """Return the pod's field that ``valueFrom`` names: empty for a missing label, ``None`` if only a cluster has it."""
    field_ref = source.get("fieldRef") if isinstance(source, dict) else None
    path = field_ref.get("fieldPath") if isinstance(field_ref, dict) else None
    if not isinstance(path, str):
        return None
    if path in _OWN:
        return replace(_OWN[path], name=name)
    match = _FIELD.fullmatch(path)
    if match is None:
        return None
    part, label = match.groups()
    if label in _TOLD:
        return Variable(name, _TOLD[label], told=True)
    if label.startswith(_UPSTREAMS):
        return None
    # A label's ``$`` is literal.
    return Variable(name, str(_mapping(metadata, part).get(label, "")).replace("$", "$$"))


def _resources(parts: tuple[Mapping[str, Any], ...], unreadable: list[str]) -> tuple[Resources, int]:
    """Return the requests, and the memory limit.

    The container's amounts override its pod's, and a limit alone is also the request. Unreadable requests get the
    default.
    """
    named: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for part in parts:
        for kind in ("requests", "limits"):
            for name, value in _mapping(part, kind).items():
                named.setdefault(name, value)
        limits = {**_mapping(part, "limits"), **limits}
    others = [name for name in (*named, *limits) if name not in (*_RESOURCES, _STORAGE)]
    unreadable += [f"{name}: there is nothing here but {', '.join(_RESOURCES)}" for name in dict.fromkeys(others)]
    default = Resources()
    asked = Resources(
        _amount(named, "cpu", kube_cpu, unreadable, default.cpu_m),
        _amount(named, "memory", kube_memory, unreadable, default.memory),
        _amount(named, GPU, kube_count, unreadable, 0),
    )
    other = limits.get("memory") != named.get("memory")
    return asked, _amount(limits, "memory", kube_memory, unreadable, 0) if other else asked.memory


def _amount(
    named: Mapping[str, Any], name: str, parse: Callable[[object], int], unreadable: list[str], default: int
) -> int:
    if name not in named:
        return default
    try:
        return parse(named[name])
    except ValueError as error:
        unreadable.append(f"{name}: {error}")
        return default
