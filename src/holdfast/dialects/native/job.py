"""Reads job manifests, also in the short form, into specifications."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.array import arrayed, read_array
from holdfast.dialects.native.dependencies import read_dependencies
from holdfast.dialects.native.envelope import LABEL_VALUE, read_group, read_job_name, take_kind
from holdfast.dialects.native.notify import read_notify
from holdfast.dialects.native.policy import read_policy
from holdfast.dialects.native.preparing import read_inputs, read_preparation
from holdfast.dialects.native.resources import read_resources
from holdfast.dialects.native.settings import read_settings
from holdfast.dialects.native.watching import read_stall, read_warning
from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.domain.access.group import BELOW, LONGEST
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec
from holdfast.domain.workloads.watching import CHECKPOINTED
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.array.model import ArraySpec

MOST_ARGUMENTS = 10_000
LONGEST_ARGUMENT = 131_071
"""Bytes; Linux' limit for one argument or variable."""
LARGEST_COMMAND = 1_000_000
LARGEST_ENV = 1_000_000
MOST_VARIABLES = 1000
MOST_LABELS = 64
LONGEST_ANNOTATION = 65_536
MOST_PORTS = 64
MOST_POLICIES = 32
RESERVED_ENV = "HOLDFAST_"
SHELL = ("/bin/sh", "-c")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PORT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


def read_job_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> JobSpec | ArraySpec | None:
    """Read a job in either form: nested ``metadata`` and ``spec``, or short with all fields side by side.

    Returns:
        The specification, of an array if it has ``array``; or ``None`` if anything is wrong.
    """
    before = len(problems)
    root = Fields(value, path, problems)
    take_kind(root)
    if "spec" in value or "metadata" in value:
        metadata, spec = root.nested("metadata"), root.nested("spec", required=True)
        root.finish()
    else:
        metadata = spec = root
    job = _read_parts(metadata or Fields({}, root.at("metadata"), problems), spec) if spec is not None else None
    return job if len(problems) == before else None


def _read_parts(metadata: Fields, spec: Fields) -> JobSpec | ArraySpec:
    name = read_job_name(metadata)
    command = _read_command(spec)
    resources, gpus = read_resources(spec)
    env, secrets = _read_variables(spec)
    job = JobSpec(
        name=name or name_from_command(command),
        command=command,
        labels=read_labels(metadata, "labels"),
        annotations=metadata.mapping("annotations", most=MOST_LABELS, longest=LONGEST_ANNOTATION),
        queue=spec.name("queue") or DEFAULT_QUEUE,
        group=read_group(spec),
        env=env,
        secrets=secrets,
        working_dir=_read_working_dir(spec),
        resources=resources,
        gpus=gpus,
        **(_WITHOUT if spec.lacks(_RARE) else _read_rare(spec, gpus=resources.gpus > 0)),
    )
    if job.identity:
        job = evolve(job, identity=_below(spec, job))
    array = read_array(spec)
    spec_read = job if array is None else arrayed(job, array, metadata)
    if metadata is not spec:
        metadata.finish()
    spec.finish()
    return spec_read


def _read_rare(spec: Fields, *, gpus: bool) -> dict[str, Any]:
    """Read fields that few jobs have; with thousands of jobs, asking for each field takes time."""
    settings = read_settings(spec)
    deadlines_s = {"deadline": settings.get("deadline_s"), "totalDeadline": settings.get("total_deadline_s")}
    warning = read_warning(spec, deadlines_s)
    if warning is not None:
        settings.setdefault("checkpointed_exit_code", CHECKPOINTED)
    return {
        **settings,
        "ports": read_ports(spec),
        "node_selector": read_labels(spec, "nodeSelector"),
        "retry_policies": read_policy_names(spec),
        "inline_policies": _read_inline(spec),
        "stall": read_stall(spec, gpus=gpus),
        "after": read_dependencies(spec, is_array=spec.has("array")),
        "notify": read_notify(spec),
        "inputs": read_inputs(spec),
        "prepare": read_preparation(spec, _read_command),
        "keeps_work": _read_keeping(spec),
        "identity": BELOW if spec.flag("identity") else "",
        "warning": warning,
    }


def _read_keeping(spec: Fields) -> bool:
    keeps = spec.flag("keepWorkDirectory", default=True)
    if not keeps and spec.has("workingDir"):
        message = "is for each run's own work directory, and workingDir is another, which always stays"
        spec.problem("keepWorkDirectory", message, hint="leave it out")
    return keeps


def _below(spec: Fields, job: JobSpec) -> str:
    """Return the group of jobs that a job submits itself: its own group, extended by its name."""
    below = f"{job.group}{BELOW}{job.name}" if job.group else job.name
    if len(below) > LONGEST:
        message = f"gives a group of {len(below)} characters to what it submits; at most {LONGEST} are allowed"
        spec.problem("identity", message, hint="use a shorter group")
    return below


def name_from_command(command: tuple[str, ...]) -> str:
    """Make a job's name from its program: its base name as a DNS label."""
    base = command[0].rstrip("/").rsplit("/", 1)[-1] if command else ""
    return _NOT_IN_NAME.sub("-", base.lower()).strip("-")[:LONGEST_NAME].rstrip("-") or "job"


def _read_command(spec: Fields) -> tuple[str, ...]:
    words = spec.texts("command", most=MOST_ARGUMENTS, longest=LONGEST_ARGUMENT)
    script = spec.text("shell", longest=LONGEST_ARGUMENT)
    if spec.has("command") and spec.has("shell"):
        spec.problem("shell", "cannot be set together with command; set one of them")
    elif not spec.has("command") and not spec.has("shell"):
        spec.problem("command", "is required", hint='write command: [PROGRAM, ARGUMENT...] or shell: "..."')
    elif words is not None and not any(words[:1]):
        spec.problem("command", "must name a program")
    if sum(map(len, words or ())) > LARGEST_COMMAND:
        spec.problem("command", f"is longer than {LARGEST_COMMAND} characters in all")
    return tuple(words or ()) if script is None else (*SHELL, script)


def read_labels(fields: Fields, name: str) -> dict[str, str]:
    """Read a mapping of labels."""
    labels = fields.mapping(name, most=MOST_LABELS)
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or len(key.rsplit("/", 1)[-1]) > LONGEST_NAME or len(key) > 4 * LONGEST_NAME:
            hint = "letters, digits, '-', '_' and '.', at most 63, after an optional 'prefix/'"
            fields.problem(f"{name}.{key}", f"{shown(key)} is not a label name", hint=hint)
        if not LABEL_VALUE.fullmatch(value) or len(value) > LONGEST_NAME:
            hint = "letters, digits, '-', '_' and '.', at most 63; longer texts fit into annotations"
            fields.problem(f"{name}.{key}", f"{shown(value)} is not a label value", hint=hint)
    return labels


def _read_variables(spec: Fields) -> tuple[dict[str, str], dict[str, str]]:
    """Read ``env``: what has a value, and what names a secret."""
    variables = spec.raw("env")
    named = (
        {key: value for key, value in variables.items() if isinstance(value, dict)}
        if isinstance(variables, dict)
        else {}
    )
    if not named or not isinstance(variables, dict):
        return read_env(spec), {}
    plain = {key: value for key, value in variables.items() if key not in named}
    secrets = {}
    for key, value in named.items():
        part = Fields(value, spec.at(f"env.{key}"), spec.problems)
        secrets[str(key)] = name = part.text("secret", required=True) or ""
        if name and not _SECRET.fullmatch(name):
            hint = "letters, digits, '_', '-' and '.', not starting with '-' or '.'"
            part.problem("secret", f"{shown(name)} is not the name of a secret", hint=hint)
        part.finish()
    _check_variables(spec, secrets)
    return read_env(Fields({"env": plain}, spec.path, spec.problems)), secrets


def read_env(spec: Fields) -> dict[str, str]:
    """Read ``env``."""
    env = bounded_env(spec, "env")
    _check_variables(spec, env)
    return env


def bounded_env(spec: Fields, field: str, *, largest: int = LARGEST_ENV) -> dict[str, str]:
    """Read variables of any names, bounded by what a program can be given; ``most`` limits all characters together."""
    env = spec.mapping(field, most=MOST_VARIABLES, longest=LONGEST_ARGUMENT)
    for key in env:
        if "=" in key or "\0" in key:
            spec.problem(f"{field}.{shown(key)}", "cannot be the name of a variable")
    if sum(len(key) + len(value) for key, value in env.items()) > largest:
        spec.problem(field, f"is longer than {largest} characters in all")
    return env


def _check_variables(spec: Fields, env: Mapping[str, str]) -> None:
    for key in env:
        if key.startswith(RESERVED_ENV):
            spec.problem(f"env.{key}", f"names that start with {RESERVED_ENV} are set by Holdfast itself")
        elif not _VARIABLE.fullmatch(key):
            hint = "letters, digits and '_', not starting with a digit"
            spec.problem(f"env.{key}", f"{shown(key)} is not a variable name", hint=hint)


def _read_working_dir(spec: Fields) -> str | None:
    value = spec.text("workingDir")
    if value is not None and not value.startswith("/"):
        spec.problem("workingDir", f"{shown(value)} is not an absolute path")
    return value


def read_ports(spec: Fields) -> tuple[str, ...]:
    """Read ``ports``: names of ports, which each run gets."""
    names = spec.texts("ports", most=MOST_PORTS, longest=LONGEST_NAME) or []
    seen: set[str] = set()
    for i, name in enumerate(names):
        variable = port_variable(name)
        if not _PORT_NAME.fullmatch(name):
            spec.problem(
                f"ports[{i}]", f"{shown(name)} is not a port name", hint="a letter, then letters, digits, '-', '_'"
            )
        elif variable in seen:
            spec.problem(f"ports[{i}]", f"{shown(name)} becomes the same variable as a port before it: {variable}")
        seen.add(variable)
    return tuple(names)


def port_variable(name: str) -> str:
    """Return the name of the variable with a port's number."""
    return f"{RESERVED_ENV}PORT_{name.upper().replace('-', '_')}"


def read_policy_names(spec: Fields) -> tuple[str, ...]:
    """Read ``retryPolicies``; a repeated name counts at its first place."""
    names = spec.texts("retryPolicies", most=MOST_POLICIES) or []
    for i, name in enumerate(names):
        spec.check_name(f"retryPolicies[{i}]", name)
    return tuple(dict.fromkeys(names))


def _read_inline(spec: Fields) -> tuple[RetryPolicy, ...]:
    value = spec.raw("retry")
    if value is None:
        return ()
    if not isinstance(value, list):
        listed, paths = [value], [spec.at("retry")]
    else:
        listed, paths = value, [f"{spec.at('retry')}[{i}]" for i in range(len(value))]
    if len(listed) > MOST_POLICIES:
        spec.problem("retry", f"has {len(listed)} policies; at most {MOST_POLICIES} are allowed")
        return ()
    policies = [_read_one_inline(spec, item, paths[i], _inline_name(i)) for i, item in enumerate(listed)]
    policies_read = [policy for policy in policies if policy is not None]
    names = [policy.name for policy in policies_read]
    for name in {name for name in names if names.count(name) > 1}:
        spec.problem("retry", f"two policies have the name {name!r}", hint="counters follow policy names")
    return tuple(policies_read)


def _inline_name(place: int) -> str:
    return "inline" if place == 0 else f"inline{place + 1}"


def _read_one_inline(spec: Fields, value: object, path: str, default_name: str) -> RetryPolicy | None:
    if not isinstance(value, dict):
        spec.problems.append(Problem(path, f"must be the spec of a RetryPolicy, not {shown(value)}"))
        return None
    name = Fields(value, path, spec.problems).name("name") if value.get("name") is not None else default_name
    rest = {key: item for key, item in value.items() if key != "name"}
    return read_policy(rest, path=path, name=name or default_name, problems=spec.problems)


_NOTHING = Fields({}, "", [])
_WITHOUT = _read_rare(_NOTHING, gpus=False)
_RARE = _NOTHING.names
