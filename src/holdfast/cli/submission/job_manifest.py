"""Builds the manifest of a job from the flags of ``run``; the server checks its meaning.

Retry flags become inline policies: the exit codes never to retry come first and those to retry last, with the policy
files of ``--policy`` between them. So "never" beats a file, and a file beats the catch-all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.manifests import API_VERSION, read_policy_specs
from holdfast.cli.submission.array_flags import array_section, unused_name
from holdfast.cli.submission.export import exported
from holdfast.dialects.native.resources import parse_gpus
from holdfast.domain.terms.settings import SETTINGS, Setting, Whole, Word
from holdfast.domain.units import parse_amount, parse_cpu, parse_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.flags import Flags
    from holdfast.cli.submission.run_options import RunOptions

Manifest = dict[str, Any]
DEFAULT_RETRIES = 3
"""With ``--retry-on-exit`` and no ``--retries``: a list of exit codes alone must not retry for ever."""


_NUMBER = re.compile(r"[0-9.]+")
_LEAST_MEMORY = 1 << 20
"""A number of bytes below this is one whose unit was forgotten."""


def manifest_of(options: RunOptions, cli: Cli, flags: Flags) -> Manifest:
    """Build the manifest of a job or an array; reads policy files, variables and standard input.

    Args:
        options: The flags.
        cli: The command's environment.
        flags: Collects problems, and may have some already.

    Raises:
        InvalidRequest: With every flag that is wrong.
    """
    files = [policy for policy in options.policy if _is_file(policy)]
    metadata = {"name": options.name, "labels": flags.pairs("--label", options.label)}
    spec = {
        "command": options.command,
        "queue": options.queue,
        "group": options.group,
        "env": exported(options.export, cli, flags) | flags.pairs("--env", options.env, defaults=cli.environ),
        "workingDir": str(Path(cli.cwd(), options.workdir or "")),
        "resources": _resources(options, flags),
        **_settings(options, flags),
        "stall": _set(
            {
                "noOutput": _checked(flags, "--stall-no-output", options.stall_no_output),
                "noProgress": _checked(flags, "--stall-no-progress", options.stall_no_progress),
                "idleDevice": _checked(flags, "--stall-idle-device", options.stall_idle_device),
            }
        ),
        "dependsOn": options.after,
        "notify": [_notified(wish) for wish in options.notify],
        "signal": _warning(options, flags),
        "retryPolicies": [policy for policy in options.policy if policy not in files],
        "retry": _inline_policies(options, read_policy_specs(files, flags), flags),
        "array": array_section(options, flags, cli.stdin),
    }
    if spec["array"] is not None and options.name is None:
        metadata["name"] = unused_name(options.command[0])
    flags.finish()
    return {"apiVersion": API_VERSION, "kind": "Job", "metadata": _set(metadata), "spec": _set(spec)}


def _settings(options: RunOptions, flags: Flags) -> Manifest:
    """Write the settings whose flags are given."""
    texts = [(setting, getattr(options, setting.attribute, None)) for setting in SETTINGS]
    return {setting.key: _setting(setting, text, flags) for setting, text in texts if text is not None}


def _setting(setting: Setting, text: str, flags: Flags) -> str | int | None:
    flag, values = setting.flag, setting.values
    if isinstance(values, Whole):
        return flags.integer(flag, text, low=values.low, high=values.high)
    return flags.choice(flag, text, tuple(values.options)) if isinstance(values, Word) else _checked(flags, flag, text)


def _is_file(policy: str) -> bool:
    """Tell a file from a stored policy's name: names have no slash and no such ending."""
    return "/" in policy or policy.endswith((".yaml", ".yml", ".json"))


def _notified(text: str) -> Manifest | str:
    """Read ``NAME`` or ``NAME:EVENT,EVENT``."""
    to, colon, occasions = text.partition(":") if "://" not in text else (text, "", "")
    return {"to": to, "on": [occasion.strip() for occasion in occasions.split(",")]} if colon else to


def _set(values: Manifest) -> Manifest:
    """Leave out what no flag set."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _resources(options: RunOptions, flags: Flags) -> Manifest:
    flags.parsed("--cpus", options.cpus, parse_cpu)
    size = flags.parsed("--memory", options.memory, parse_memory)
    bare = options.memory is not None and _NUMBER.fullmatch(options.memory) is not None
    if size is not None and size < _LEAST_MEMORY and bare and float(options.memory or 0):
        flags.wrong("--memory", f"{options.memory!r} is {size} bytes", hint=f"did you mean {options.memory}Gi?")
    named = flags.pairs("--resource", options.resource)
    for name, amount in named.items():
        flags.parsed(f"--resource {name}", amount, parse_amount)
    return _set({"cpu": options.cpus, "memory": options.memory, "gpu": _gpus(options, flags), **named})


def _gpus(options: RunOptions, flags: Flags) -> int | str | Manifest | None:
    """Write how many GPUs, or which share of one, and which GPUs are suitable."""
    amount = flags.parsed("--gpus", options.gpus, parse_gpus)
    flags.parsed("--gpu-memory", options.gpu_memory, parse_memory)
    count = None if amount is None or options.gpus is None else options.gpus if amount[1] else amount[0]
    if options.gpu_type is None and options.gpu_memory is None:
        return count
    device = {"type": options.gpu_type, "memory": options.gpu_memory}
    return {"count": 1 if count is None else count, **_set(device)}


def _warning(options: RunOptions, flags: Flags) -> Manifest:
    """Read ``[NAME@]DURATION``, as Slurm's ``--signal`` is written; the server knows the names."""
    if options.signal is None:
        return {}
    name, _, before = options.signal.rpartition("@")
    return _set({"name": name or None, "before": _checked(flags, "--signal", before)})


def _checked(flags: Flags, flag: str, text: str | None) -> str | None:
    """Check a duration and return it as it was written."""
    return text if flags.duration(flag, text) is not None else None


def _inline_policies(options: RunOptions, files: Sequence[Manifest], flags: Flags) -> Manifest | list[Manifest] | None:
    """Order the flags' own rules and the policy files; one policy is not written as a list."""
    denied = flags.integers("--no-retry-on-exit", options.no_retry_on_exit, low=1, high=255)
    deny = _rule("no-retry-on-exit", "Fail", denied)
    allow = _allowing_policy(options, flags)
    if allow and deny and not files:
        return {**allow, "rules": [deny, *allow["rules"]]}
    denial = {"name": "no-retry-on-exit", "defaultAction": "Fail", "rules": [deny]} if deny else None
    policies = [policy for policy in (denial, *files, allow) if policy]
    if len(policies) > 1 and allow:
        policies[-1] = {"name": "inline", **allow}
    return policies[0] if len(policies) == 1 else policies


def _allowing_policy(options: RunOptions, flags: Flags) -> Manifest | None:
    """Make the policy that grants what the flags ask for; ``None`` when they ask for no retries."""
    limit = flags.integer("--retries", options.retries)
    codes = flags.integers("--retry-on-exit", options.retry_on_exit, low=1, high=255)
    backoff = _backoff(options, flags)
    if options.retries is None and not options.retry_on_exit:
        for flag in backoff:
            flags.wrong(_BACKOFF_FLAGS[flag], "needs retries", hint="add --retries N, or write it in the policy")
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


def _backoff(options: RunOptions, flags: Flags) -> Manifest:
    delays = {
        "initialDelay": _checked(flags, "--backoff", options.backoff),
        "maxDelay": _checked(flags, "--max-backoff", options.max_backoff),
        "multiplier": flags.number("--multiplier", options.multiplier, low=1),
    }
    return _set(delays)


def _rule(name: str, action: str, codes: Sequence[int]) -> Manifest | None:
    if not codes:
        return None
    return {"name": name, "action": action, "onExitCodes": {"operator": "In", "values": list(codes)}}
