"""Reads the launches of Fluster's clients, and describes jobs in Fluster's terms."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.fluster.names import read_name
from holdfast.dialects.fluster.resources import Offers, read_resources
from holdfast.dialects.fluster.retry import read_retry, retry_warnings
from holdfast.dialects.fluster.status import status_of
from holdfast.dialects.fluster.world import ENTRYPOINT, CallSettings, known_bundle, world_of
from holdfast.dialects.native.job import bounded_env, read_ports
from holdfast.dialects.reading import Fields
from holdfast.domain.policy.model import BuiltIn
from holdfast.domain.record import Struct
from holdfast.domain.rights import hands_on
from holdfast.domain.workloads.preparing import Input
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec
from holdfast.errors import InvalidManifest, InvalidRequest, Problem
from holdfast.ports.names import ExternalName
from holdfast.service.admission.inputs import kept, sent
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.calls import CallRunner
    from holdfast.ports.catalogue import Catalogue
    from holdfast.service.detail import JobDetail

SYSTEM = "fluster"
"""The prefix of the names of Fluster's jobs, and their queue, if it exists."""
GRACE_S = 5.0
"""Between SIGTERM and SIGKILL, as upstream's controller requests of its workers."""
_LONGEST_TIMEOUT_S = 100 * 365 * 86_400
_DIGEST_BYTES = 24


def external_name(name: str, caller: Caller, request: bytes, system: str = SYSTEM) -> ExternalName:
    """Return the name of a job that a caller launches, as the users of a system know it."""
    identity = f"{caller.principal.name}\0{caller.principal.uid}\0".encode()
    return ExternalName(f"{system}/{name}", blake2b(identity + request, digest_size=_DIGEST_BYTES).digest())


def written_launch(
    request: Mapping[str, Any], catalogue: Catalogue, nodes: Sequence[Node], along: Along
) -> tuple[str, WrittenJob]:
    """Read a launch; returns the full name of its job, and the job.

    Args:
        request: The fields of a ``LaunchJobRequest`` that are set.
        catalogue: The queues and settings.
        nodes: The nodes where jobs run.
        along: Keeps the files that come with it.

    Raises:
        InvalidManifest: The launch is not valid; with every problem.
    """
    problems: list[Problem] = []
    name = read_name(request.get("name", ""), request.get("parent_job_id", ""), problems)
    resources = read_resources(request.get("resources"), problems, _offers(catalogue, nodes))
    policy = read_retry(request.get("retry"), catalogue.settings.fluster, problems)
    timeout_s = _timeout(request, problems)
    ports = read_ports(Fields(request, "", problems))
    env = _environment(request, problems)
    runs = program_of(request, along, problems)
    if problems or name is None or policy is None:
        message = f"job {request.get('name', '')!r} is not valid"
        raise InvalidManifest(message, problems=problems)
    spec = JobSpec(
        name=name.label,
        command=runs["command"],
        inputs=runs["inputs"],
        prepare=runs["prepare"],
        keeps_work=False,
        queue=SYSTEM if SYSTEM in catalogue.queues else DEFAULT_QUEUE,
        group=name.parent,
        env={**env, **runs["env"], "FLUSTER_JOB_ID": name.full},
        resources=resources.resources,
        gpus=resources.gpus,
        gang=resources.gang,
        node_selector=resources.node_selector,
        ports=ports,
        scheduling_timeout_s=timeout_s,
        grace_s=GRACE_S,
        inline_policies=(policy,),
        builtin=BuiltIn.NONE,
        identity=name.full if hands_on(along.caller, name.full) else "",
    )
    return name.full, WrittenJob(spec, flat=True, warnings=(*resources.warnings, *retry_warnings(request.get("retry"))))


def _offers(catalogue: Catalogue, nodes: Sequence[Node]) -> Offers:
    counted = {name for name, _ in catalogue.settings.resources}
    counted.update(name for node in nodes for name, _ in node.capacity.named)
    labels = {pair for node in nodes for pair in node.labels.items()}
    return Offers(frozenset(counted), frozenset(labels))


def _timeout(request: Mapping[str, Any], problems: list[Problem]) -> float | None:
    """Read how long each attempt may wait for a place; 0 means forever."""
    timeout_s: int = request.get("scheduling_timeout_seconds", 0)
    if not 0 <= timeout_s <= _LONGEST_TIMEOUT_S:
        allowed = (f"0 to {_LONGEST_TIMEOUT_S}",)
        problems.append(Problem("scheduling_timeout_seconds", f"{timeout_s} is out of range", allowed=allowed))
    return float(timeout_s) or None


def _environment(request: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    environment: Mapping[str, Any] = request.get("environment", {})
    return bounded_env(Fields(environment, "environment", problems), "env_vars")


def told_status(detail: JobDetail, now: float, settings: RetrySettings) -> dict[str, Any]:
    """Return the fields of ``JobStatus`` for a job, apart from its name, addresses and result."""
    spec, job = load_spec(detail.job.spec), detail.job
    number = detail.attempts[-1].number if detail.attempts else 0
    runs = [run for run in detail.runs if run.attempt == number]
    return {**status_of(job, spec, detail.attempts, runs, now, settings), "parent_job_id": job.group}


_CALL, _BUNDLE = "serialized_entrypoint", "bundle_blob"
_SCRIPT = b"#!"
_HINT = "HOLDFAST_FLUSTER_PYTHON names a Python that has cloudpickle and that the account of the job can run"


class Along(Struct, frozen=True):
    """Keeps the call and the workspace that come with a launch."""

    caller: Principal
    """Who launches."""
    blobs: Blobs | None
    """Keeps files; ``None``: this server keeps none."""
    calls: CallRunner | None
    """Runs calls; ``None``: this server runs none."""

    def refusal(self) -> str | None:
        """Say why the caller's calls cannot run here, or return ``None``."""
        return "calls cannot run on this server" if self.calls is None else self.calls.refusal(self.caller)


def _setup(calls: CallRunner) -> CallSettings:
    return CallSettings(tuple(calls.command), calls.index, calls.installer, calls.limit_s)


def program_of(request: Mapping[str, Any], along: Along, problems: list[Problem]) -> Mapping[str, Any]:
    """Return the fields of a job that say what it runs. Files of an invalid launch are not kept.

    Args:
        request: The fields of a ``LaunchJobRequest`` that are set.
        along: Keeps the files that come with it.
        problems: Problems of the launch; those found here are added.
    """
    data: bytes = request.get(_CALL, b"")
    if not data:
        problems.append(Problem(_CALL, "is required"))
    script = data.startswith(_SCRIPT)
    packed = any(request.get("environment", {}).get(field) for field in ("pip_packages", "extras"))
    refusal = along.refusal() if packed or (data and not script) else None
    if refusal is not None:
        problems.append(Problem(_CALL, refusal, hint=_HINT))
    bundle = known_bundle(request, problems)
    setup = CallSettings() if along.calls is None else _setup(along.calls)
    runtime = world_of(request, setup, problems, has_bundle=bundle is not None or _BUNDLE in request)
    if problems:
        return {}
    try:
        if request.get(_BUNDLE):
            name = kept(request[_BUNDLE], along.blobs, along.caller, field=_BUNDLE, archive=True)
            bundle = Input(blob=name, unpack=True)
        call = sent(data, ENTRYPOINT, along.blobs, along.caller, field=_CALL)
    except InvalidRequest as error:
        problems += error.problems
        return {}
    return runtime.of(call, bundle, script=script)
