"""Builds the manifest of a job from the flags of ``run``; the server checks its meaning.

Retry flags become inline policies: the exit codes never to retry come first and those to retry last, with the policy
files of ``--policy`` between them. So "never" beats a file, and a file beats the catch-all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.cli.manifests import API_VERSION
from holdfast.dialects.native.resources import parse_gpus
from holdfast.domain.units import parse_amount, parse_cpu, parse_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.flags import Flags

Manifest = dict[str, Any]
DEFAULT_RETRIES = 3
"""With ``--retry-on-exit`` and no ``--retries``: a list of exit codes alone must not retry for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFlags:
    """What the flags say about retries, as typed."""

    retries: str | None = None
    policies: Sequence[str] = ()
    """Names of stored policies."""
    files: Sequence[Manifest] = ()
    """Specs of policies read from files."""
    retry_on_exit: Sequence[str] = ()
    no_retry_on_exit: Sequence[str] = ()
    backoff: str | None = None
    max_backoff: str | None = None
    multiplier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags:
    """What the flags say about the job, as typed."""

    command: Sequence[str]
    name: str | None = None
    queue: str | None = None
    priority: str | None = None
    gang: str | None = None
    cpus: str | None = None
    memory: str | None = None
    gpus: str | None = None
    gpu_type: str | None = None
    gpu_memory: str | None = None
    named: Mapping[str, str] = field(default_factory=dict)
    """Amounts of what else is counted, by name."""
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    working_dir: str | None = None
    timeout: str | None = None
    grace: str | None = None
    stall_no_output: str | None = None
    stall_no_progress: str | None = None
    stall_idle_device: str | None = None
    after: Sequence[str] = ()
    """What it waits for, each as ``NAME:CONDITION``."""
    notify: Sequence[str] = ()
    signal: str | None = None
    checkpointed_exit_code: str | None = None
    on_unknown_end: str | None = None


_NUMBER = re.compile(r"[0-9.]+")
_LEAST_MEMORY = 1 << 20
"""A number of bytes below this is one whose unit was forgotten."""


def build(job: JobFlags, retry: RetryFlags, flags: Flags) -> Manifest:
    """Build a Job manifest; what is wrong with the flags is noted in ``flags``."""
    metadata = {"name": job.name, "labels": dict(job.labels)}
    spec = {
        "command": list(job.command),
        "queue": job.queue,
        "group": job.group,
        "priority": flags.integer("--priority", job.priority, low=-1_000_000, high=1_000_000),
        "gang": flags.integer("--gang", job.gang, low=1),
        "env": dict(job.env),
        "workingDir": job.working_dir,
        "resources": _resources(job, flags),
        "deadline": _checked(flags, "--timeout", job.timeout),
        "grace": _checked(flags, "--grace", job.grace),
        "stall": _set(
            {
                "noOutput": _checked(flags, "--stall-no-output", job.stall_no_output),
                "noProgress": _checked(flags, "--stall-no-progress", job.stall_no_progress),
                "idleDevice": _checked(flags, "--stall-idle-device", job.stall_idle_device),
            }
        ),
        "dependsOn": list(job.after),
        "notify": [_notified(wish) for wish in job.notify],
        "signal": _warning(job, flags),
        "checkpointedExitCode": flags.integer("--checkpointed-exit-code", job.checkpointed_exit_code, low=1, high=255),
        "onUnknownEnd": None if job.on_unknown_end is None else job.on_unknown_end.capitalize(),
        "retryPolicies": list(retry.policies),
        "retry": _inline_policies(retry, flags),
    }
    return {"apiVersion": API_VERSION, "kind": "Job", "metadata": _set(metadata), "spec": _set(spec)}


def _notified(text: str) -> Manifest | str:
    """Read ``NAME`` or ``NAME:EVENT,EVENT``."""
    to, colon, occasions = text.partition(":") if "://" not in text else (text, "", "")
    return {"to": to, "on": [occasion.strip() for occasion in occasions.split(",")]} if colon else to


def _set(values: Manifest) -> Manifest:
    """Leave out what no flag set."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _resources(job: JobFlags, flags: Flags) -> Manifest:
    flags.parsed("--cpus", job.cpus, parse_cpu)
    size = flags.parsed("--memory", job.memory, parse_memory)
    bare = job.memory is not None and _NUMBER.fullmatch(job.memory) is not None
    if size is not None and size < _LEAST_MEMORY and bare and float(job.memory or 0):
        flags.wrong("--memory", f"{job.memory!r} is {size} bytes", hint=f"did you mean {job.memory}Gi?")
    for name, amount in job.named.items():
        flags.parsed(f"--resource {name}", amount, parse_amount)
    return _set({"cpu": job.cpus, "memory": job.memory, "gpu": _gpus(job, flags), **job.named})


def _gpus(job: JobFlags, flags: Flags) -> int | str | Manifest | None:
    """Write how many GPUs, or which share of one, and which will do."""
    amount = flags.parsed("--gpus", job.gpus, parse_gpus)
    flags.parsed("--gpu-memory", job.gpu_memory, parse_memory)
    count = None if amount is None or job.gpus is None else job.gpus if amount[1] else amount[0]
    if job.gpu_type is None and job.gpu_memory is None:
        return count
    device = {"type": job.gpu_type, "memory": job.gpu_memory}
    return {"count": 1 if count is None else count, **_set(device)}


def _warning(job: JobFlags, flags: Flags) -> Manifest:
    """Read ``[NAME@]DURATION``, as Slurm's ``--signal`` is written; the server knows the names."""
    if job.signal is None:
        return {}
    name, _, before = job.signal.rpartition("@")
    return _set({"name": name or None, "before": _checked(flags, "--signal", before)})


def _checked(flags: Flags, flag: str, text: str | None) -> str | None:
    """Check a duration and return it as it was written."""
    return text if flags.duration(flag, text) is not None else None


def _inline_policies(retry: RetryFlags, flags: Flags) -> Manifest | list[Manifest] | None:
    """Order the flags' own rules and the policy files; one policy is not written as a list."""
    denied = flags.integers("--no-retry-on-exit", retry.no_retry_on_exit, low=1, high=255)
    deny = _rule("no-retry-on-exit", "Fail", denied)
    allow = _allowing_policy(retry, flags)
    if allow and deny and not retry.files:
        return {**allow, "rules": [deny, *allow["rules"]]}
    denial = {"name": "no-retry-on-exit", "defaultAction": "Fail", "rules": [deny]} if deny else None
    policies = [policy for policy in (denial, *retry.files, allow) if policy]
    if len(policies) > 1 and allow:
        policies[-1] = {"name": "inline", **allow}
    return policies[0] if len(policies) == 1 else policies


def _allowing_policy(retry: RetryFlags, flags: Flags) -> Manifest | None:
    """Make the policy that grants what the flags ask for; ``None`` when they ask for no retries."""
    limit = flags.integer("--retries", retry.retries)
    codes = flags.integers("--retry-on-exit", retry.retry_on_exit, low=1, high=255)
    backoff = _backoff(retry, flags)
    if retry.retries is None and not retry.retry_on_exit:
        for flag in backoff:
            flags.wrong(_BACKOFF_FLAGS[flag], "has nothing to delay", hint="add --retries N, or write it in the policy")
        return None
    # A rule, not the default action, because only the first policy's default counts and the queue's come first.
    rule = _rule("retry-on-exit", "Retry", codes) or {"name": "retries", "action": "Retry"}
    policy: Manifest = {
        "retryLimit": DEFAULT_RETRIES if limit is None else limit,
        "defaultAction": "Fail" if codes else "Retry",
        "rules": [rule],
    }
    if backoff:
        policy["backoff"] = backoff
    return policy


_BACKOFF_FLAGS = {"initialDelay": "--backoff", "maxDelay": "--max-backoff", "multiplier": "--multiplier"}


def _backoff(retry: RetryFlags, flags: Flags) -> Manifest:
    delays = {
        "initialDelay": _checked(flags, "--backoff", retry.backoff),
        "maxDelay": _checked(flags, "--max-backoff", retry.max_backoff),
        "multiplier": flags.number("--multiplier", retry.multiplier, low=1),
    }
    return _set(delays)


def _rule(name: str, action: str, codes: Sequence[int]) -> Manifest | None:
    if not codes:
        return None
    return {"name": name, "action": action, "onExitCodes": {"operator": "In", "values": list(codes)}}
