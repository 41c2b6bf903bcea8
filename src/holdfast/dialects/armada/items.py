"""Checks the items of Armada's submissions as its server does, with its messages, in its order.

Upstream stops at the first problem; here all are found, and the first is the one that its users know.
Source: the rules of ``SubmitJobs`` and the ``submission`` section of the shipped configuration.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.quantity import parse_quantity
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_JOB_SET = 1023
LONGEST_CLIENT_ID = 100
LARGEST_POD = 65_535
"""Bytes."""
PRIORITY_CLASSES = ("armada-default", "armada-preemptible", "armada-resilient")
"""The priority classes of the shipped configuration; the first is the default."""
LONGEST_GRACE_S = 300
LEAST_MEMORY = Decimal(1024 * 1024)
GANG = "armadaproject.io/gangId"
CARDINALITY = "armadaproject.io/gangCardinality"
FAIL_FAST = "armadaproject.io/failFast"
_NANOSECONDS = 1_000_000_000
_INIT_CPU = (
    "Init container {} contains invalid cpu value {}.  All init containers must set requests/limits to fractional cpu "
    "e.g. 900m"
)


class ItemProblem(Struct, frozen=True):
    """A problem of an item: its place and the message."""

    path: str
    message: str
    hint: str | None = None


def request_findings(queue: str, job_set: str) -> Iterator[ItemProblem]:
    """Find the problems of a submission apart from its items."""
    if not queue:
        yield ItemProblem("queue", "queue is a required field")
    if not job_set:
        yield ItemProblem("jobSetId", "job set id is a required field")
    elif len(job_set.encode()) > LONGEST_JOB_SET:
        length, most = len(job_set.encode()), LONGEST_JOB_SET + 1
        yield ItemProblem("jobSetId", f"job set id of length {length} must be less than max character length {most}")
    elif "\0" in job_set:
        yield ItemProblem("jobSetId", "job set id contains a NUL character, which no database keeps")


def pod_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the pod of an item, in whichever field it is."""
    pods = item.get("podSpecs") or []
    pod = item.get("podSpec") or (pods[0] if pods else None)
    return pod if isinstance(pod, dict) else None


def item_findings(item: Mapping[str, Any], pod_size: int = 0) -> Iterator[ItemProblem]:
    """Find the problems of an item; ``pod_size`` is the size of its pod as sent, in bytes."""
    if not item.get("namespace"):
        yield ItemProblem("namespace", "namespace is a required field", "namespace: default")
    pod = pod_of(item)
    yield from _one_pod(item)
    if pod is None:
        return
    if pod_size > LARGEST_POD:
        beyond = f"greater than the maximum allowed size of {LARGEST_POD}"
        message = f"Pod spec has a size of {pod_size} bytes which is {beyond}"
        yield ItemProblem("podSpec", message)
    if not pod.get("containers"):
        yield ItemProblem("podSpec.containers", "Pod spec has no containers")
    yield from _affinity(pod)
    for where, container in containers_of(pod):
        yield from _resources(where, container)
    yield from _init_cpu(pod)
    name = pod.get("priorityClassName")
    if name and name not in PRIORITY_CLASSES:
        hint = f"one of {', '.join(PRIORITY_CLASSES)}"
        yield ItemProblem("podSpec.priorityClassName", f"priority class {name} is not supported", hint)
    yield from _grace(pod)
    yield from _ingresses(item)
    yield from _ports(pod)
    client_id = str(item.get("clientId") or "")
    if len(client_id.encode()) > LONGEST_CLIENT_ID:
        length = len(client_id.encode())
        message = f"client id of length {length} is greater than max allowed length of  {LONGEST_CLIENT_ID}"
        yield ItemProblem("clientId", message)


def containers_of(pod: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """List the containers of a pod with their paths: main containers, then init containers."""
    containers: list[tuple[str, Mapping[str, Any]]] = []
    for name in ("containers", "initContainers"):
        listed: Sequence[Mapping[str, Any]] = pod.get(name) or []
        containers += [(f"podSpec.{name}[{place}]", container) for place, container in enumerate(listed)]
    return containers


def _one_pod(item: Mapping[str, Any]) -> Iterator[ItemProblem]:
    pod, several = item.get("podSpec"), item.get("podSpecs") or []
    if pod is None and not several:
        yield ItemProblem("podSpec", "Job must contain at least one PodSpec")
    if pod is not None and several:
        yield ItemProblem("podSpec", "PodSpec must be nil if PodSpecs is provided (i.e., these are exclusive)")
    if len(several) > 1:
        yield ItemProblem("podSpecs", "Jobs with multiple pods are not supported")


def _affinity(pod: Mapping[str, Any]) -> Iterator[ItemProblem]:
    node = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    if node.get("preferredDuringSchedulingIgnoredDuringExecution"):
        message = "preferredDuringSchedulingIgnoredDuringExecution node affinity is not supported by Armada"
        yield ItemProblem("podSpec.affinity.nodeAffinity", message)


def _resources(where: str, container: Mapping[str, Any]) -> Iterator[ItemProblem]:
    """Check that limits equal requests and reach the minimum."""
    name, path = container.get("name", ""), f"{where}.resources"
    amounts = container.get("resources") or {}
    requests, limits = amounts.get("requests") or {}, amounts.get("limits") or {}
    if not requests and not limits:
        hint = "resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}"
        yield ItemProblem(path, f"container {name} has no resources specified", hint)
        return
    if len(requests) != len(limits):
        yield ItemProblem(path, f"container {name} defines different resources for requests and limits")
    for kind, listed in (("request", requests), ("limit", limits)):
        for resource, written in sorted(listed.items()):
            if str(written).startswith("-"):
                message = f"container {name} defines negative resource {kind} ({written}) for resource {resource}"
                yield ItemProblem(f"{path}.{kind}s.{resource}", message)
            elif (amount := _amount(written)) is None:
                message = f"quantities must match the regular expression of Kubernetes' quantities: {written!r}"
                yield ItemProblem(f"{path}.{kind}s.{resource}", message, "such as 2, 500m or 1Gi")
            elif kind == "request" and len(requests) == len(limits):
                yield from _agree(f"{path}.requests.{resource}", (name, resource, str(written)), amount, limits)


def _agree(
    path: str, named: tuple[str, str, str], request: Decimal, limits: Mapping[str, Any]
) -> Iterator[ItemProblem]:
    name, resource, written = named
    limit = _amount(limits[resource]) if resource in limits else None
    if resource not in limits:
        yield ItemProblem(path, f"container {name} defines {resource} for requests but not limits")
    elif limit is not None and limit < request:
        yield ItemProblem(path, f"container {name} defines {resource} with limits smaller than requests")
    elif limit is not None and limit > request:
        yield ItemProblem(path, f"container {name} defines {resource} with limits great than 1.00*requests")
    if resource == "memory" and request < LEAST_MEMORY:
        yield ItemProblem(path, f'container "{name}" memory requests ({written}) below server minimum (1Mi)')


def _amount(written: object) -> Decimal | None:
    try:
        return parse_quantity(written)
    except ValueError:
        return None


def _init_cpu(pod: Mapping[str, Any]) -> Iterator[ItemProblem]:
    for place, container in enumerate(pod.get("initContainers") or []):
        amounts = container.get("resources") or {}
        for kind in ("requests", "limits"):
            written = (amounts.get(kind) or {}).get("cpu")
            amount = None if written is None else _amount(written)
            if amount and amount == amount.to_integral_value():
                where = f"podSpec.initContainers[{place}].resources.{kind}.cpu"
                yield ItemProblem(where, _INIT_CPU.format(container.get("name", ""), written))


def _grace(pod: Mapping[str, Any]) -> Iterator[ItemProblem]:
    grace_s = pod.get("terminationGracePeriodSeconds")
    if grace_s and not 1 <= int(grace_s) <= LONGEST_GRACE_S:
        most = LONGEST_GRACE_S * _NANOSECONDS
        message = f"terminationGracePeriodSeconds of {grace_s} must be [{_NANOSECONDS}, {most}], or omitted"
        yield ItemProblem("podSpec.terminationGracePeriodSeconds", message, f"from 1 to {LONGEST_GRACE_S}")


def _ingresses(item: Mapping[str, Any]) -> Iterator[ItemProblem]:
    seen: dict[int, int] = {}
    for place, ingress in enumerate(item.get("ingress") or []):
        if not ingress.get("ports"):
            message = "ingress contains zero ports. Each ingress should have at least one port"
            yield ItemProblem(f"ingress[{place}].ports", message)
        for port in ingress.get("ports") or []:
            if port in seen:
                message = (
                    f"port {port} has two ingress configurations, specified in ingress configs with indexes "
                    f"{seen[port]}, {place}. Each port should at maximum have one ingress configuration"
                )
                yield ItemProblem(f"ingress[{place}].ports", message)
            seen[port] = place


def _ports(pod: Mapping[str, Any]) -> Iterator[ItemProblem]:
    seen: dict[int, str] = {}
    for where, container in containers_of(pod):
        for port in container.get("ports") or []:
            number, name = port.get("containerPort"), container.get("name", "")
            if number in seen:
                message = (
                    f'container port {number} is exposed multiple times, specified in containers "{seen[number]}" and '
                    f'"{name}". Should only be exposed once'
                )
                yield ItemProblem(f"{where}.ports", message)
            seen[number] = name


def gang_findings(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, ItemProblem]]:
    """Find the items that are members of gangs, which are not supported yet, by their places."""
    for place, item in enumerate(items):
        annotations = item.get("annotations") or {}
        if GANG in annotations and str(annotations.get(CARDINALITY, "1")) != "1":
            hint = "leave the annotation out, or submit a Holdfast job with gang: N"
            yield place, ItemProblem(f"annotations.{GANG}", "gangs of several jobs are not supported yet", hint)
