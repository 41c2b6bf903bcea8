"""Reads a launch into a job specification: a field that is not supported is refused with the reason, not ignored.

A launch is a mapping of the fields of ``LaunchJobRequest`` that are set. Images are not run, and nothing is isolated
from the machine's network: isolation other than Iris' default is refused.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.iris.budgets import policy_of, read_budgets
from holdfast.dialects.iris.files import Files, read_files
from holdfast.dialects.iris.names import JobName, read_new_name
from holdfast.dialects.iris.placement import read_constraints, read_resources
from holdfast.dialects.iris.program import TaskServer, program_of
from holdfast.dialects.native.job import read_ports
from holdfast.dialects.reading import Fields
from holdfast.domain.record import Struct
from holdfast.domain.workloads.family import ChildrenEnd
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.errors import Problem

DOOR, IRIS = "door", "iris"
"""The label of jobs that came through this API."""
REQUEST = "iris/request"
"""The annotation with the original request as JSON."""
MOST_TASKS = 10_000
_ROOM_FOR_WORDS = 16_384
"""Characters kept of the command line that launched a job."""
_MS = 1000
_LONGEST_S = 100 * 365 * 86_400
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 63
_KNOWN_POLICIES = range(4)
_BANDS = {0: 0, 1: 1_000, 2: 0, 3: -1_000, 4: 2_000}
"""Priorities of ``PRIORITY_BAND_INHERIT``, ``PRODUCTION``, ``INTERACTIVE``, ``BATCH`` and ``SYSTEM``."""
_CHILDREN = {1: ChildrenEnd.WITH_ATTEMPT, 2: ChildrenEnd.UNLESS_FAILED}
"""What happens to children with ``TERMINATE_CHILDREN``, the default of a single task, and ``PRESERVE_CHILDREN``."""
_DEFAULT_PROFILES = (0, 2)
_CLUSTER_EGRESS = (0, 1)


class Launch(Struct, frozen=True):
    """The content of a launch."""

    name: JobName
    spec: JobSpec
    existing: int = 0
    """Its ``ExistingJobPolicy``."""
    inherits: bool = False
    """Whether a child inherits the priority of its parent."""
    files: Files = Files()
    """Files to store, besides those in the specification."""


def read_launch(request: Mapping[str, Any], server: TaskServer, problems: list[Problem]) -> Launch | None:
    """Read a launch; ``None`` if anything is wrong.

    Args:
        request: The fields that are set.
        server: What a task learns of this server, and may use of it.
        problems: Where to add problems.
    """
    fields, before = Fields(request, "", problems), len(problems)
    name = read_new_name(str(request.get("name") or ""), "name", problems)
    budgets = read_budgets(fields)
    tasks = fields.integer("replicas", low=1, high=MOST_TASKS)
    resources = read_resources(fields)
    selector = read_constraints(fields)
    ports = read_ports(fields)
    _refuse_what_is_not_done(fields)
    band = fields.integer("priority_band", low=0, high=max(_BANDS)) or 0
    program = program_of(fields, server, ports)
    files = read_files(fields)
    ends = fields.integer("preemption_policy", low=0, high=max(_CHILDREN)) or 0
    deadline_s, scheduling_s = _seconds(fields, "timeout"), _seconds(fields, "scheduling_timeout")
    if name is None or program is None or len(problems) > before:
        return None
    spec = JobSpec(
        name=_NOT_IN_NAME.sub("-", name.local.lower()).strip("-")[:_LONGEST_NAME].rstrip("-") or IRIS,
        command=program.command,
        priority=_BANDS[band],
        group=str(name),
        labels={DOOR: IRIS},
        annotations={REQUEST: json.dumps(_kept(request), separators=(",", ":"))},
        env={**program.env, "IRIS_JOB_ID": str(name)},
        inputs=files.inputs,
        prepare=program.prepare,
        keeps_work=False,
        resources=resources.amounts,
        gpus=resources.gpus,
        gang=tasks or 1,
        ports=ports,
        deadline_s=deadline_s,
        scheduling_timeout_s=scheduling_s,
        node_selector=selector,
        inline_policies=(policy_of(budgets),),
        children=_CHILDREN[ends or (1 if (tasks or 1) == 1 else max(_CHILDREN))],
    )
    return Launch(name, spec, int(request.get("existing_job_policy") or 0), inherits=not band, files=files)


def kept_request(annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the request without its files."""
    request: dict[str, Any] = json.loads(annotations.get(REQUEST, "{}"))
    return request


def _kept(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch for display: without files, secrets and values of variables."""
    kept = {key: value for key, value in request.items() if key not in {"bundle_blob", "environment", "entrypoint"}}
    entry = request.get("entrypoint") or {}
    kept["entrypoint"] = {key: entry[key] for key in ("run_command",) if key in entry}
    if "submit_argv" in kept:
        kept["submit_argv"] = _beginning(kept["submit_argv"])
    return kept


def _beginning(words: Sequence[str]) -> list[str]:
    """Return the beginning of a command line, as many words as fit; it is only displayed."""
    beginning, room = list[str](), _ROOM_FOR_WORDS
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        beginning.append(word)
    return beginning


def _seconds(fields: Fields, name: str) -> float | None:
    """Read a duration in milliseconds; 0 means for ever."""
    part = fields.nested(name)
    value = None if part is None else part.integer("milliseconds", low=0, high=_LONGEST_S * _MS)
    return value / _MS if value else None


def _refuse_what_is_not_done(fields: Fields) -> None:
    request = fields.value
    if request.get("container_profile", 0) not in _DEFAULT_PROFILES:
        message = "is not there: programs run as processes of this machine, without a container to harden or to open"
        fields.problem("container_profile", message, allowed=("CONTAINER_PROFILE_DEFAULT",))
    if request.get("egress_policy", 0) not in _CLUSTER_EGRESS:
        message = "is not there: programs have the network of their machine"
        fields.problem("egress_policy", message, allowed=("EGRESS_POLICY_CLUSTER",))
    if (request.get("environment") or {}).get("secrets"):
        hint = "keep them by holdfast create secret, and name them in a manifest; or isolate the job from yours"
        fields.problem("environment.secrets", "cannot be delivered as files here", hint=hint)
    if "federation" in request:
        fields.problem("federation", "there are no peers here: jobs of other clusters are not taken over")
    if "coscheduling" in request and not (request["coscheduling"] or {}).get("group_by"):
        message = "coscheduling requires a non-empty group_by (the topology level to gang on)"
        fields.problem("coscheduling.group_by", message)
    if request.get("existing_job_policy", 0) not in _KNOWN_POLICIES:
        fields.problem("existing_job_policy", f"{request['existing_job_policy']} is none", allowed=("0 to 3",))
