"""Reads Armada's submissions, as in its API and job files, into job specifications.

A pod's first container is the program; its command is run, not its image. A pod that needs more than one container is
refused.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.items import (
    FAIL_FAST,
    ItemProblem,
    gang_findings,
    item_findings,
    pod_of,
    request_findings,
)
from holdfast.dialects.jobset.program import read_program
from holdfast.dialects.jobset.wording import ManifestNotes, local
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.kubejob.program import Variable
from holdfast.domain.workloads.spec import JobSpec, PodProgram
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.dialects.jobset.program import ReadProgram
    from holdfast.dialects.jobset.wording import Engines

RETRY_POLICY = "armadaproject.io/retry-policy"
EXTERNAL_URI = "armadaproject.io/externalJobUri"
"""The annotation for a job's job set, and the label to find its jobs by."""
POD_NAMES = "armada-{id}-0"
"""The base of pod names; a retry adds its number (the document, "Pod Naming")."""
DEFAULT_GRACE_S = 1
_DEFAULT_LIMITS = {"cpu": "1", "memory": "1Gi"}
_LARGEST_PRIORITY = 2_147_483_647
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 63


class ArmadaItem(Struct, frozen=True):
    """One job of a submission."""

    spec: JobSpec
    client_id: str = ""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def request_problems(queue: str, job_set: str) -> list[Problem]:
    """Find the problems of a submission apart from its items, in upstream's order."""
    return [Problem(finding.path, finding.message, hint=finding.hint) for finding in request_findings(queue, job_set)]


def read_items(
    queue: str,
    job_set: str,
    items: Sequence[Mapping[str, Any]],
    *,
    sizes: Sequence[int] = (),
    engines: Engines = local,
) -> list[ArmadaItem]:
    """Read the items of a submission; paths of problems are relative to each item.

    Args:
        queue: The queue's name.
        job_set: The id of the job set.
        items: The items as JSON; one that occurs several times is read once.
        sizes: The size of each item's pod as sent, in bytes; where unknown, no pod is too large.
        engines: Lists the engines that may run them.
    """
    gangs: dict[int, list[ItemProblem]] = {}
    for place, finding in gang_findings(items):
        gangs.setdefault(place, []).append(finding)
    items_read, by_id = [], dict[int, ArmadaItem]()
    for place, item in enumerate(items):
        read = by_id.get(id(item))
        if read is None:
            findings = (*item_findings(item, sizes[place] if place < len(sizes) else 0), *gangs.get(place, ()))
            problems = [Problem(fault.path, fault.message, hint=fault.hint) for fault in findings]
            read = by_id[id(item)] = _read_item(item, (queue, job_set), problems, engines)
        items_read.append(read)
    return items_read


def _read_item(
    item: Mapping[str, Any], place: tuple[str, str], problems: list[Problem], engines: Engines
) -> ArmadaItem:
    queue, job_set = place
    pod = pod_of(item)
    annotations = dict(item.get("annotations") or {})
    labels = dict(item.get("labels") or {})
    uri = str(item.get("externalJobUri") or annotations.get(EXTERNAL_URI) or "")
    if uri:
        labels[EXTERNAL_URI] = uri
    bare = JobSpec(name="armada", command=(), queue=queue, retry_policies=policies_of(annotations))
    if pod is None or problems:
        return ArmadaItem(bare, str(item.get("clientId") or ""), tuple(problems))
    notes = ManifestNotes(engines=engines)
    read = read_program({"metadata": item, "spec": _with_defaults(pod)}, notes.is_counted)
    _check_runnable(read, "podSpec", problems, notes)
    queue_variables = _told(queue, job_set)
    program = evolve(read.program, env=(*queue_variables, *read.program.env), node_selector=_selector(item, pod))
    spec = evolve(
        bare,
        name=_NOT_IN_NAME.sub("-", program.container.lower()).strip("-")[:_LONGEST_NAME].rstrip("-") or "armada",
        command=program.command,
        priority=-priority_of(item.get("priority")),
        labels=labels,
        annotations=annotations,
        env=program.shown_env(),
        working_dir=program.working_dir,
        resources=program.resources,
        deadline_s=program.deadline_s,
        grace_s=program.grace_s,
        node_selector=program.node_selector,
        group=job_set,
        no_retry=str(annotations.get(FAIL_FAST, "")).lower() == "true",
        pod=PodProgram(program, {**item, "namespace": str(item.get("namespace"))}, POD_NAMES),
    )
    return ArmadaItem(spec, str(item.get("clientId") or ""), tuple(problems), tuple(notes.warnings))


def policies_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the policies that a job adds to those of its queue."""
    names = (name.strip() for name in str(annotations.get(RETRY_POLICY, "")).split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def priority_of(value: object) -> int:
    """Round a priority as upstream does; lower numbers go first."""
    number = float(value) if isinstance(value, (int, float)) and not math.isnan(value) else 0.0
    return round(min(max(number, 0.0), float(_LARGEST_PRIORITY)))


def _with_defaults(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of the shipped configuration."""
    filled = dict(pod)
    if not filled.get("terminationGracePeriodSeconds"):
        filled["terminationGracePeriodSeconds"] = DEFAULT_GRACE_S
    filled["containers"] = [_with_limits(container) for container in pod.get("containers") or []]
    return filled


def _with_limits(container: Mapping[str, Any]) -> dict[str, Any]:
    amounts = container.get("resources") or {}
    requests, limits = dict(amounts.get("requests") or {}), dict(amounts.get("limits") or {})
    for name, amount in _DEFAULT_LIMITS.items():
        if name not in requests and name not in limits:
            requests[name] = limits[name] = amount
    return {**container, "resources": {**amounts, "requests": requests, "limits": limits}}


def _selector(item: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    return {**(item.get("requiredNodeLabels") or {}), **(pod.get("nodeSelector") or {})}


def _told(queue: str, job_set: str) -> tuple[Variable, ...]:
    """Return the variables that Armada gives each container."""
    return (
        Variable("ARMADA_JOB_ID", "JOB_UID", told=True),
        Variable("ARMADA_QUEUE", queue.replace("$", "$$")),
        Variable("ARMADA_JOB_SET_ID", job_set.replace("$", "$$")),
    )


def _check_runnable(read: ReadProgram, path: str, problems: list[Problem], notes: ManifestNotes) -> None:
    """Refuse what no engine here supports, and note fields without effect."""
    program = read.program
    for where, spec in program.placed():
        if spec is not program:
            hint = "start it from the main container's command"
            problems.append(Problem(f"{path}.{where}", "jobs of several containers are not supported yet", hint=hint))
    if not program.command:
        hint = 'write the program out: command: [PROGRAM], args: ["..."]'
        problems.append(Problem(f"{path}.containers[0].command", "is required: images are not run here", hint=hint))
    resources = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
    for container, name in read.devices:
        message = f"{name} is offered by no node"
        problems.append(Problem(f"{path}.{container}.resources", message, resources))
    for container, problem in read.unreadable:
        problems.append(Problem(f"{path}.{container}.resources", problem))
    if program.is_arguments and program.image:
        notes.warn(path, f"image {program.image} is not run: its arguments are taken for the program")
    for note in read.notes:
        notes.warn(path, note)
