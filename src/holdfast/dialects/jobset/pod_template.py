"""Checks a pod template as far as Holdfast runs it: containers, commands, restart policy, known fields.

Images, volumes and security contexts are kept as written, for engines that support them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.jobset.quantity import parse_quantity
from holdfast.dialects.jobset.values import count, dns_1123_label
from holdfast.dialects.jobset.wording import shown as quoted_value
from holdfast.dialects.native.watching import annotated
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.record import Struct
from holdfast.domain.suggestion import closest
from holdfast.domain.workloads.jobset.model import NAMESPACE
from holdfast.domain.workloads.kubejob.model import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.dialects.jobset.wording import ManifestNotes

RETRY_POLICIES = "holdfast.dev/retry-policies"
"""An annotation: retry policies, separated by commas, that decide before the Job counts a failed pod."""
ARMADA_POLICY = "armadaproject.io/retry-policy"
"""Armada's annotation for the same, with one policy."""
MOST_CONTAINERS = 100
MOST_LABELS = 1000
LONGEST_ANNOTATION = 262_144


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POD_FIELDS = _words(
    """
    activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
    enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname
    hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy
    priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName
    schedulerName schedulingGates schedulingGroup securityContext serviceAccount serviceAccountName
    setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
    topologySpreadConstraints volumes
    """
)
_CONTAINER_FIELDS = _words(
    """
    args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe
    resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce
    terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir
    """
)


_METADATA_FIELDS = _words(
    """
    annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation
    labels managedFields name namespace ownerReferences resourceVersion selfLink uid
    """
)


class PodTemplate(Struct, frozen=True):
    """The parts of a pod template that the rest of a Job's manifest refers to."""

    containers: frozenset[str] = frozenset()
    """Names of containers, including init containers."""
    restart_policy: str = ""
    mounts: frozenset[str] = frozenset()
    """Names of volumes that are mounted anywhere."""
    volumes: tuple[str, ...] = ()


def read_pod_template(spec: Fields, notes: ManifestNotes) -> PodTemplate:
    """Check ``template`` of a Job's spec."""
    template = spec.nested("template")
    if template is None:
        notes.required(spec.at("template.spec.containers"))
        return PodTemplate()
    if metadata := template.nested("metadata"):
        check_metadata(metadata, notes)
        metadata.mapping("labels", most=MOST_LABELS)
        metadata.mapping("annotations", most=MOST_LABELS, longest=LONGEST_ANNOTATION)
        annotated(metadata, {})
    pod = template.nested("spec") or Fields({}, template.at("spec"), spec.problems)
    template.finish()
    _check_known(pod, _POD_FIELDS)
    pod.mapping("nodeSelector", most=MOST_LABELS)
    count(pod, notes, "terminationGracePeriodSeconds")
    if count(pod, notes, "activeDeadlineSeconds") == 0:
        notes.invalid(pod.at("activeDeadlineSeconds"), 0, f"must be between 1 and {UNLIMITED}, inclusive")
    _check_amounts(pod, notes)
    mains = _read_containers(pod, "containers", notes)
    inits = _read_containers(pod, "initContainers", notes)
    if not mains and not isinstance(pod.value.get("containers"), list):
        notes.required(pod.at("containers"))
    volumes = pod.mappings("volumes", most=MOST_CONTAINERS)
    return PodTemplate(
        containers=frozenset(str(container.value.get("name", "")) for container in (*mains, *inits)),
        restart_policy=str(pod.raw("restartPolicy") or ""),
        mounts=frozenset(name for container in (*mains, *inits) for name in _mounted(container)),
        volumes=tuple(str(volume.value.get("name", "")) for volume in volumes),
    )


def _mounted(container: Fields) -> list[str]:
    mounts = container.value.get("volumeMounts")
    listed = mounts if isinstance(mounts, list) else []
    return [str(mount.get("name", "")) for mount in listed if isinstance(mount, dict)]


def _read_containers(pod: Fields, name: str, notes: ManifestNotes) -> list[Fields]:
    containers = pod.mappings(name, most=MOST_CONTAINERS)
    seen: set[str] = set()
    for container in containers:
        _check_known(container, _CONTAINER_FIELDS)
        _check_name(container, notes, seen)
        _check_amounts(container, notes)
        for field in ("command", "args"):
            container.texts(field, most=10_000, longest=131_071)
        if (place := container.raw("workingDir")) is not None:
            container.check_text("workingDir", place)
        for variable in container.mappings("env", most=1000):
            if not variable.value.get("name"):
                notes.required(variable.at("name"))
            if (value := variable.raw("value")) is not None:
                variable.check_text("value", value, longest=131_071)
    if containers == [] and isinstance(pod.value.get(name), list) and name == "containers":
        notes.required(pod.at(name))
    return containers


def _check_name(container: Fields, notes: ManifestNotes, seen: set[str]) -> None:
    name = container.raw("name")
    if not isinstance(name, str) or not name:
        notes.required(container.at("name"))
        return
    for message in dns_1123_label(name):
        notes.invalid(container.at("name"), name, message)
    if name in seen:
        notes.duplicate(container.at("name"), name)
    seen.add(name)


def check_metadata(fields: Fields, notes: ManifestNotes) -> None:
    """Check that ``metadata`` of an object or a template contains only Kubernetes' own fields."""
    for name in fields.value:
        if name not in _METADATA_FIELDS:
            hint = closest(name, sorted(_METADATA_FIELDS)) or "what is asked for is in spec, beside metadata"
            fields.problem(str(name), f"unknown field {shown(name)}", hint=hint)
    namespace = fields.raw("namespace")
    if namespace not in (None, "", NAMESPACE):
        notes.not_supported(fields.at("namespace"), namespace, [NAMESPACE])
    if fields.has("generateName") and not fields.has("name"):
        hint = "write name instead, or have a name made up for what is new: holdfast create -f FILE"
        fields.problem("generateName", "names no object that is there already", hint=hint)
    warn_of_armada(fields, notes)


def warn_of_armada(metadata: Fields, notes: ManifestNotes) -> None:
    """Warn of Armada's annotation, which has no effect in Kubernetes' kinds."""
    written = metadata.value.get("annotations")
    if isinstance(written, dict) and ARMADA_POLICY in written:
        where = metadata.at(f"annotations.{ARMADA_POLICY}")
        hint = f"name policies with {RETRY_POLICIES}, on a Job or on the template of a replicated job"
        notes.warn(where, "has no effect here", hint=hint)


def _check_amounts(fields: Fields, notes: ManifestNotes) -> None:
    """Check that no request exceeds its limit; invalid quantities are found when the program is read."""
    resources = fields.value.get("resources")
    written = [resources.get(kind) if isinstance(resources, dict) else None for kind in ("requests", "limits")]
    requests, limits = (part if isinstance(part, dict) else {} for part in written)
    for name in sorted(requests.keys() & limits.keys()):
        try:
            above = parse_quantity(requests[name]) > parse_quantity(limits[name])
        except ValueError:
            continue
        if above:
            message = f"must be less than or equal to {name} limit of {limits[name]}"
            path = fields.at(f"resources.requests.{name}")
            notes.forgivable(path, f"Invalid value: {quoted_value(requests[name])}: {message}")


def _check_known(fields: Fields, allowed: Collection[str]) -> None:
    for name in fields.value:
        if name not in allowed:
            fields.problem(str(name), f"unknown field {shown(name)}", hint=closest(name, sorted(allowed)))
