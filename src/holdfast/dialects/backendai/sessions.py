"""Reads a request for a session into a job specification; what this server cannot do is refused, not ignored.

A request is a mapping of the fields that its client set, whose types and bounds were checked before.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.dialects.backendai.slots import read_slots
from holdfast.dialects.native.job import bounded_env
from holdfast.dialects.reading import DNS_LABEL, LONGEST_NAME, Fields
from holdfast.domain.record import Struct
from holdfast.domain.sessions.model import SessionSpec, SessionType
from holdfast.domain.sessions.policy import SessionRetryPolicy
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.terms.projects import Image, ResourceGroup
    from holdfast.errors import Problem

DOOR, BACKENDAI = "door", "backendai"
"""The label of jobs that came through this API."""
DEFAULT_TIER = 10
PREFIX = "BACKENDAI_"
"""What the names of variables begin with that this server sets."""
HOST_LABEL = "kubernetes.io/hostname"
IGNORED_RETRIES = "retry_policy has no effect: only batch sessions are retried"
IGNORED_AGENTS = "agent_list has no effect: it is a preference, and nodes are chosen by what is free"
_KEPT = ("bootstrap_script", "preopen_ports", "startup_command")
"""The fields of a request that are kept for answers; variables are not, as not everybody may see them."""
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")
_UNSUPPORTED = {
    "mounts": ("there are no virtual folders here", "programs see the files of their machine"),
    "attach_network": ("there are no persistent networks here", "programs have the network of their machine"),
    "callback_url": ("is not called", "create a notifier, and name it in the queue"),
}


class SessionPlace(Struct, frozen=True):
    """What a request names, and where its session goes."""

    project: str
    """The queue."""
    domain: str
    image: Image
    resource_group: ResourceGroup
    access_key: str = ""
    policy: SessionRetryPolicy = SessionRetryPolicy()
    retries_enabled: bool = True
    dependencies: tuple[str, ...] = ()
    """The ids of the jobs of the sessions that it waits for."""


def read_session(request: Mapping[str, Any], place: SessionPlace, problems: list[Problem]) -> JobSpec | None:
    """Read a request for a session; ``None`` if anything is wrong."""
    fields, before = Fields(request, "", problems), len(problems)
    for name, (message, hint) in _UNSUPPORTED.items():
        if request.get(name):
            fields.problem(name, message, hint=hint)
    batch, resources = request.get("batch") or {}, read_slots(fields)
    environ = _read_environ(fields)
    starts_at = _read_start(batch.get("starts_at"))
    selector = {**place.resource_group.node_selector, **_read_agents(fields)}
    if len(problems) > before:
        return None
    name, size, kind = str(request["session_name"]), int(request.get("cluster_size", 1)), request["session_type"]
    timeout_s = batch.get("batch_timeout") or None
    command = batch.get("startup_command")
    return JobSpec(
        name=_job_name(name),
        command=(*place.image.command, "bash", "-c", _script(request.get("bootstrap_script"), command)),
        queue=place.project,
        priority=tier_of(request),
        labels={DOOR: BACKENDAI},
        env={**place.image.env, **environ, **_variables(request, name, place)},
        resources=resources,
        gang=size,
        deadline_s=timeout_s,
        node_selector=selector,
        after=tuple(
            Dependency(job, Condition.OK, OnUnmet.CANCEL, target=DependencyKind.JOB) for job in place.dependencies
        ),
        starts_at=starts_at,
        session=SessionSpec(
            type=SessionType(kind),
            policy=place.policy,
            retries_enabled=place.retries_enabled,
            domain=place.domain,
            resource_group=place.resource_group.name,
            access_key=place.access_key,
            image=place.image.name,
            cluster_mode=str(request.get("cluster_mode", "single-node")),
            job_priority=int(request.get("job_priority", 0)),
            is_preemptible=bool(request.get("is_preemptible", True)),
            batch_timeout_s=timeout_s,
            starts_at=starts_at,
            request={key: value for key in _KEPT if (value := request.get(key) or batch.get(key))},
        ),
    )


def tier_of(request: Mapping[str, Any]) -> int:
    """Return the tier of a request: its priority in its queue."""
    values = (request.get("tier"), request.get("priority"), DEFAULT_TIER)
    return next(int(value) for value in values if value is not None)


def environ_of(spec: JobSpec) -> dict[str, str]:
    """Return the variables that a session was requested with."""
    return {name: value for name, value in spec.env.items() if not name.startswith(PREFIX)}


def warnings_of(request: Mapping[str, Any]) -> list[str]:
    """Return what a request asks for in vain."""
    warnings = []
    if request["session_type"] == SessionType.INTERACTIVE and request.get("retry_policy") is not None:
        warnings.append(IGNORED_RETRIES)
    if request.get("agent_list") and request.get("agent_selection_policy") == "preferred":
        warnings.append(IGNORED_AGENTS)
    return warnings


def _read_environ(fields: Fields) -> dict[str, str]:
    environ = bounded_env(fields, "environ")
    for name in environ:
        if name.startswith(PREFIX):
            fields.problem(f"environ.{name}", f"names that start with {PREFIX} are set by the server")
    return environ


def _read_agents(fields: Fields) -> dict[str, str]:
    """Read on which node it must run."""
    agents = fields.value.get("agent_list") or []
    if not agents or fields.value.get("agent_selection_policy") == "preferred":
        return {}
    if len(agents) > 1:
        hint = "name one agent, or a resource group, or set agent_selection_policy to preferred"
        fields.problem("agent_list", f"names {len(agents)} agents; a session can be bound to one", hint=hint)
        return {}
    return {HOST_LABEL: str(agents[0])}


def _read_start(text: str | None) -> float | None:
    """Return a time in ISO 8601 in seconds since the epoch; without a time zone it is UTC."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _job_name(name: str) -> str:
    """Return the name of the job of a session, which may have any characters."""
    label = _NOT_IN_NAME.sub("-", name.lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    return label if DNS_LABEL.fullmatch(label) else "session"


def _script(bootstrap: str | None, command: str | None) -> str:
    """Return what a kernel runs; an interactive session without a command holds its place until it is ended."""
    program = command or "exec sleep infinity"
    return program if not bootstrap else f"(\n{bootstrap}\n)\n{program}"


def _variables(request: Mapping[str, Any], name: str, place: SessionPlace) -> dict[str, str]:
    """Return the variables that all kernels have alike, by upstream's names; see also ``kernel_variables``."""
    variables = {
        "SESSION_NAME": name,
        "ACCESS_KEY": place.access_key,
        "KERNEL_IMAGE": place.image.reference,
        "PREOPEN_PORTS": ",".join(map(str, request.get("preopen_ports") or ())),
    }
    return {f"{PREFIX}{key}": value for key, value in variables.items() if value}
