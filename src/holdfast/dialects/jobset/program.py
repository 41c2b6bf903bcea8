"""Compiles a pod template: containers, environment, resources and volumes; notes fields without effect.

Engines that run real pods get the template itself, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, assert_never

from holdfast.dialects.jobset.quantity import kube_amount, kube_count, kube_cpu, kube_memory
from holdfast.dialects.native.watching import annotated
from holdfast.dialects.reading import Fields
from holdfast.domain.containers import ContainerRole, Mount, Port, Volume
from holdfast.domain.job import Resources
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.model import NAMESPACE
from holdfast.domain.workloads.kubejob.program import DEFAULT_GRACE_S, ContainerSpec, Program, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

GPU = "nvidia.com/gpu"
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_OWN = {"metadata.name": Variable("", "POD_NAME", told=True), "metadata.namespace": Variable("", NAMESPACE)}
_TOLD = {
    "job-name": "JOB_NAME",
    "controller-uid": "JOB_UID",
    "batch.kubernetes.io/job-name": "JOB_NAME",
    "batch.kubernetes.io/controller-uid": "JOB_UID",
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
"""Labels and annotations that upstream gives a pod, and the variables with the same values here."""
COUNTED = ("cpu", "memory", GPU)
"""Resources that every engine counts."""
_STORAGE = "ephemeral-storage"
_NO_PROBES = "only its exit is looked at"
_AS_WE = "it runs as the user that Holdfast runs as"
_POD_IGNORED = {
    "affinity": "nodes are chosen by nodeSelector alone",
    "nodeName": "nodes are chosen by nodeSelector alone",
    "topologySpreadConstraints": "nodes are chosen by nodeSelector alone",
    "schedulingGroup": "the pods of a job start as room becomes free",
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
    "terminationMessagePath": "its termination message is what it writes to $HOLDFAST_TERMINATION_LOG",
}
_FROM_FILE_ALONE = (
    "terminationMessagePolicy File is ignored: where nothing is written to $HOLDFAST_TERMINATION_LOG, "
    "the end of the log is the termination message"
)
"""Fields that would have an effect in a cluster, and why they have none here."""
_UPSTREAMS = ("jobset.sigs.k8s.io/", "batch.kubernetes.io/")


class ReadProgram(Struct, frozen=True):
    """A compiled pod template, with notes."""

    program: Program
    notes: tuple[str, ...] = ()
    """Fields that no engine here supports."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Invalid amounts, with their containers; the default is used instead."""
    devices: tuple[tuple[str, str], ...] = ()
    """Requested devices, with their containers."""
    gated: bool = False
    """Whether its pods have scheduling gates."""


def read_program(
    template: Mapping[str, Any],
    is_counted: Callable[[str], bool] = lambda _: False,
    default: Resources = Resources(0),
) -> ReadProgram:
    """Compile a pod template (``metadata`` and ``spec``) that has been validated.

    Args:
        template: The template.
        is_counted: Whether a named resource is counted here; any other is a device of an engine.
        default: The requests of a first container without any; none in Kubernetes.
    """
    pod, metadata = _mapping(template, "spec"), _mapping(template, "metadata")
    mains, inits = _listed(pod, "containers"), _listed(pod, "initContainers")
    first = mains[0] if mains else {}
    notes: list[str] = []
    amounts = _Amounts(_mapping(pod, "resources"), is_counted)
    main = _container(first, metadata, notes, amounts.of(first, "containers[0]", default))
    before = [
        _container(
            container, metadata, notes, amounts.of(container, f"initContainers[{place}]", Resources(0)), init=True
        )
        for place, container in enumerate(inits)
    ]
    beside = [
        _container(container, metadata, notes, amounts.of(container, f"containers[{place}]", Resources(0)))
        for place, container in enumerate(mains[1:], start=1)
    ]
    for part, ignored in ((pod, _POD_IGNORED), (first, _CONTAINER_IGNORED)):
        notes += [f"{name} is ignored: {why}" for name, why in ignored.items() if part.get(name)]
    if first.get("terminationMessagePolicy") == "File":
        notes.append(_FROM_FILE_ALONE)
    amounts_given = (_mapping(_mapping(first, "resources"), kind) for kind in ("requests", "limits"))
    if not is_counted(_STORAGE) and any(_STORAGE in given_amounts for given_amounts in amounts_given):
        notes.append(f"{_STORAGE} is ignored: files have no limit")
    others = [ContainerSpec(**container) for container in (*before, *beside)]
    own: Resources = main.pop("resources")
    watched = annotated(Fields(metadata, "", []), {})
    program = Program(
        **main,
        resources=_whole(own, others),
        own=own if others else None,
        others=tuple(others),
        volumes=tuple(_volume(container) for container in _listed(pod, "volumes")),
        devices=amounts.devices,
        grace_s=DEFAULT_GRACE_S if (grace_s := _seconds(pod, "terminationGracePeriodSeconds")) is None else grace_s,
        deadline_s=_seconds(pod, "activeDeadlineSeconds"),
        node_selector=_mapping(pod, "nodeSelector"),
        stall=watched.stall,
        warning=watched.warning,
    )
    gated = bool(pod.get("schedulingGates"))
    return ReadProgram(program, tuple(notes), tuple(amounts.unreadable), tuple(amounts.requested), gated)


def _container(
    written: Mapping[str, Any],
    metadata: Mapping[str, Any],
    notes: list[str],
    requested: tuple[Resources, int],
    *,
    init: bool = False,
) -> dict[str, Any]:
    """Return the fields of a ``ContainerSpec``."""
    sidecar = init and written.get("restartPolicy") == "Always"
    command = [*(written.get("command") or []), *(written.get("args") or [])]
    return {
        "container": str(written.get("name", "main")),
        "role": ContainerRole.SIDECAR if sidecar else ContainerRole.INIT if init else ContainerRole.MAIN,
        "image": str(written.get("image") or ""),
        "command": tuple(str(word) for word in command),
        "is_arguments": not written.get("command"),
        "env": tuple(_environment(written, metadata, notes)),
        "working_dir": written.get("workingDir") or None,
        "resources": requested[0],
        "memory_limit": requested[1],
        "ports": tuple(
            Port(item["containerPort"], str(item.get("name") or ""), str(item.get("protocol") or "TCP"))
            for item in _listed(written, "ports")
            if isinstance(item.get("containerPort"), int)
        ),
        "mounts": tuple(
            Mount(
                str(item["name"]), str(item["mountPath"]), str(item.get("subPath") or ""), item.get("readOnly") is True
            )
            for item in _listed(written, "volumeMounts")
            if item.get("name") and item.get("mountPath")
        ),
    }


def _volume(written: Mapping[str, Any]) -> Volume:
    return Volume(str(written.get("name") or ""), {name: part for name, part in written.items() if name != "name"})


def _whole(own: Resources, others: Iterable[ContainerSpec]) -> Resources:
    """Return the resources of a pod: its main containers and sidecars together, or the largest init container."""
    running, most = Resources(0), Resources(0)
    mains = own
    for other in others:
        match other.role:
            case ContainerRole.SIDECAR:
                running += other.resources
            case ContainerRole.INIT:
                most = _most(most, running + other.resources)
            case ContainerRole.MAIN:
                mains += other.resources
            case _:
                assert_never(other.role)
    return _most(most, running + mains)


def _most(resources: Resources, other: Resources) -> Resources:
    names = sorted({name for name, _ in (*resources.named, *other.named)})
    named = tuple((name, max(resources.amount_of(name), other.amount_of(name))) for name in names)
    return Resources(
        max(resources.cpu_m, other.cpu_m),
        max(resources.memory, other.memory),
        max(resources.gpu, other.gpu),
        named=named,
    )


def _listed(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [item for item in value.get(name) or [] if isinstance(item, dict)]


def _seconds(pod: Mapping[str, Any], name: str) -> float | None:
    value = pod.get(name)
    return None if value is None else float(value)


def _mapping(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _environment(container: Mapping[str, Any], metadata: Mapping[str, Any], notes: list[str]) -> Iterator[Variable]:
    for variable in container.get("env") or []:
        name, source = str(variable.get("name")), variable.get("valueFrom")
        if source is None:
            yield Variable(name, str(variable.get("value") or ""))
            continue
        from_pod = _downward(name, source, metadata)
        if from_pod is None:
            notes.append(f"environment variable {name} is left out: its value comes from the cluster")
        else:
            yield from_pod
    if container.get("envFrom"):
        notes.append("envFrom is ignored: its values come from the cluster")


def _downward(name: str, source: object, metadata: Mapping[str, Any]) -> Variable | None:
    """Return the pod's field that ``valueFrom`` names: empty for a missing label, ``None`` if only a cluster has it."""
    field_ref = source.get("fieldRef") if isinstance(source, dict) else None
    path = field_ref.get("fieldPath") if isinstance(field_ref, dict) else None
    if not isinstance(path, str):
        return None
    if path in _OWN:
        return evolve(_OWN[path], name=name)
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


class _Amounts:
    """The resources of a pod's containers."""

    def __init__(self, pod: Mapping[str, Any], is_counted: Callable[[str], bool]) -> None:
        """Begin with the requests of the whole pod, which count for its first container."""
        self._pod = pod
        self._is_counted = is_counted
        self.unreadable: list[tuple[str, str]] = []
        self.devices: dict[str, int] = {}
        self.requested: list[tuple[str, str]] = []
        """The container and name of each."""

    def of(self, container: Mapping[str, Any], where: str, default: Resources) -> tuple[Resources, int]:
        """Return the requests of a container, and its memory limit.

        Its amounts override its pod's, and a limit alone is also the request. Unreadable requests get the default.
        """
        named: dict[str, Any] = {}
        limits: dict[str, Any] = {}
        own = _mapping(container, "resources")
        for part in (own, self._pod if where == "containers[0]" else {}):
            for kind in ("requests", "limits"):
                for name, value in _mapping(part, kind).items():
                    named.setdefault(name, value)
            limits = {**_mapping(part, "limits"), **limits}
        others = [name for name in dict.fromkeys((*named, *limits)) if name not in COUNTED]
        counted = {name: self._amount(named, name, kube_amount, where, 0) for name in others if self._is_counted(name)}
        others = [name for name in others if name != _STORAGE or name in counted]
        for name in others:
            if name not in counted:
                self._device(name, named.get(name), where)
        requested = Resources(
            self._amount(named, "cpu", kube_cpu, where, default.cpu_m),
            self._amount(named, "memory", kube_memory, where, default.memory),
            self._amount(named, GPU, kube_count, where, 0),
            named=tuple(sorted((name, amount) for name, amount in counted.items() if amount)),
        )
        same = limits.get("memory") == named.get("memory")
        return requested, requested.memory if same else self._amount(limits, "memory", kube_memory, where, 0)

    def _device(self, name: str, value: object, where: str) -> None:
        """Note a resource that is not counted here: a device that an engine may have, or nothing known."""
        if "/" not in name:
            self.requested.append((where, name))
        elif count := self._amount({name: value}, name, kube_count, where, 0):
            self.devices[name] = self.devices.get(name, 0) + count
            self.requested.append((where, name))

    def _amount(
        self, named: Mapping[str, Any], name: str, parse: Callable[[object], int], where: str, default: int
    ) -> int:
        if name not in named:
            return default
        try:
            return parse(named[name])
        except ValueError as error:
            self.unreadable.append((where, f"{name}: {error}"))
            return default
