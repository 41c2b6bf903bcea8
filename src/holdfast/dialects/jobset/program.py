"""Reads what a process needs out of a pod template: program, environment, resources; notes what is not carried out.

Decides how one pod becomes one local process; engines that run real pods take the template itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.quantity import kube_count, kube_cpu, kube_memory
from holdfast.domain.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_GRACE_S = 30.0
GPU = "nvidia.com/gpu"
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_TOLD = {
    "batch.kubernetes.io/job-completion-index": "JOB_COMPLETION_INDEX",
    "jobset.sigs.k8s.io/jobset-name": "JOBSET_NAME",
    "jobset.sigs.k8s.io/replicatedjob-name": "REPLICATED_JOB_NAME",
    "jobset.sigs.k8s.io/replicatedjob-replicas": "REPLICATED_JOB_REPLICAS",
    "jobset.sigs.k8s.io/job-index": "JOB_INDEX",
    "jobset.sigs.k8s.io/job-global-index": "JOB_GLOBAL_INDEX",
    "jobset.sigs.k8s.io/global-replicas": "GLOBAL_REPLICAS",
    "jobset.sigs.k8s.io/restart-attempt": "JOBSET_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/job-restart-attempt": "JOB_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/coordinator": "JOBSET_COORDINATOR",
}
"""Labels and annotations upstream gives a pod, and the variables that tell the same here."""
_UPSTREAMS = ("jobset.sigs.k8s.io/", "batch.kubernetes.io/")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One local process in place of a pod."""

    container: str = "main"
    command: tuple[str, ...] = ()
    has_command: bool = True
    """Whether it is told what to run; else ``command`` has only arguments for what its image runs."""
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    resources: Resources = Resources()
    grace_s: float = DEFAULT_GRACE_S
    node_selector: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the template asks for and a local process does not have, for people."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with amounts it asks for; it gets the default instead."""


def read_program(
    template: Mapping[str, Any], extra_env: Mapping[str, str] | None = None, *, expand: bool = True
) -> Program:
    """Read a pod template (``metadata`` and ``spec``) that has been validated.

    Args:
        template: The pod template.
        extra_env: What the pod is told besides; ``$(NAME)`` in arguments may refer to it. The template's own wins.
        expand: Whether to replace ``$(NAME)``; without, everything stays as written, to be shown to people.
    """
    pod, metadata = _mapping(template, "spec"), _mapping(template, "metadata")
    containers = [one for one in pod.get("containers") or [] if isinstance(one, dict)]
    first = containers[0] if containers else {}
    notes: list[str] = []
    written = _expanded if expand else _as_written
    told = extra_env or {}
    downward = _Downward(metadata, told if expand else {name: f"$({name})" for name in _TOLD.values()})
    env = {**told, **_environment(first, notes, written, downward)}
    command = [*(first.get("command") or []), *(first.get("args") or [])]
    if first.get("image"):
        notes.append(f"image {first['image']} is ignored: the command runs as a local process")
    ignored = [f"container {one.get('name')}" for one in containers[1:]]
    ignored += [f"init container {one.get('name')}" for one in pod.get("initContainers") or []]
    ignored += [f"volume {one.get('name')}" for one in pod.get("volumes") or []]
    notes += [f"{one} is ignored" for one in ignored]
    unreadable: list[str] = []
    resources = _resources((_mapping(first, "resources"), _mapping(pod, "resources")), unreadable)
    return Program(
        container=str(first.get("name", "main")),
        command=tuple(written(str(word), env) for word in command),
        has_command=bool(first.get("command")),
        env=env,
        working_dir=first.get("workingDir") or None,
        resources=resources,
        grace_s=_grace_s(pod),
        node_selector=_mapping(pod, "nodeSelector"),
        labels=_mapping(metadata, "labels"),
        annotations=_mapping(metadata, "annotations"),
        notes=tuple(notes),
        unreadable=tuple(unreadable),
    )


def _grace_s(pod: Mapping[str, Any]) -> float:
    value = pod.get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if value is None else float(value)


def _mapping(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class _Downward:
    """What a program may ask about its own pod (Kubernetes' downward API), as far as it is known here."""

    metadata: Mapping[str, Any]
    """Of its template."""
    told: Mapping[str, str]
    """The variables its pod is told."""

    def value(self, source: object) -> str | None:
        """Return what ``valueFrom`` asks for: empty for a label it lacks, ``None`` for what only a cluster knows."""
        field_ref = source.get("fieldRef") if isinstance(source, dict) else None
        path = field_ref.get("fieldPath") if isinstance(field_ref, dict) else None
        match = _FIELD.fullmatch(path) if isinstance(path, str) else None
        if match is None:
            return None
        part, name = match.groups()
        if name in _TOLD:
            return self.told.get(_TOLD[name], "")
        if name.startswith(_UPSTREAMS):
            return None
        return str(_mapping(self.metadata, part).get(name, ""))


def _environment(
    container: Mapping[str, Any],
    notes: list[str],
    written: Callable[[str, Mapping[str, str]], str],
    downward: _Downward,
) -> dict[str, str]:
    env: dict[str, str] = {}
    for variable in container.get("env") or []:
        name = str(variable.get("name"))
        known = downward.value(variable.get("valueFrom"))
        if known is not None:
            env[name] = known
        elif variable.get("valueFrom") is not None:
            notes.append(f"environment variable {name} is left out: its value comes from the cluster")
        else:
            env[name] = written(str(variable.get("value") or ""), env)
    if container.get("envFrom"):
        notes.append("envFrom is ignored: its values come from the cluster")
    return env


def _expanded(text: str, env: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` as Kubernetes does: an unknown name stays as written, ``$$`` is a dollar."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else env.get(name, match[0])

    return _REFERENCE.sub(value, text)


def _as_written(text: str, env: Mapping[str, str]) -> str:
    """Keep a text as it is."""
    del env
    return text


def _resources(parts: tuple[Mapping[str, Any], ...], unreadable: list[str]) -> Resources:
    """Take requests before limits, the container's before its pod's; what cannot be read asks for the default."""
    named: dict[str, Any] = {}
    for part in parts:
        for kind in ("requests", "limits"):
            for name, value in _mapping(part, kind).items():
                named.setdefault(name, value)
    default = Resources()
    return Resources(
        _amount(named, "cpu", kube_cpu, unreadable, default.cpu_m),
        _amount(named, "memory", kube_memory, unreadable, default.memory),
        _amount(named, GPU, kube_count, unreadable, 0),
    )


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
