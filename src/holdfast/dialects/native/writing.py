"""Writes retry policies and jobs in the form they are read from, without defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.dependencies import FIELD, write_dependencies
from holdfast.dialects.native.matchers import write_exit_codes, write_signal
from holdfast.dialects.native.policy import UNCAPPED
from holdfast.dialects.native.preparing import write_preparing
from holdfast.dialects.native.resources import write_resources
from holdfast.dialects.native.settings import write_settings
from holdfast.dialects.native.watching import write_watching
from holdfast.domain.policy.model import AntiAffinity, Backoff, RetryPolicy, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.policy.model import MemoryGrowth, Mutation
    from holdfast.domain.workloads.spec import JobSpec


def write_policy(policy: RetryPolicy) -> dict[str, Any]:
    """Write a policy's ``spec``, without its name and revision; it reads back equal."""
    spec: dict[str, Any] = {"defaultAction": policy.default_action.value}
    if policy.retry_limit is not None:
        spec["retryLimit"] = policy.retry_limit
    if policy.backoff is not None:
        spec["backoff"] = write_backoff(policy.backoff)
    if policy.anti_affinity is not AntiAffinity.NONE:
        spec["antiAffinity"] = {"mode": policy.anti_affinity.value}
    if policy.on_unknown_end is not None:
        spec["onUnknownEnd"] = policy.on_unknown_end.value
    if policy.rules:
        spec["rules"] = [_write_rule(rule) for rule in policy.rules]
    return spec


def write_backoff(backoff: Backoff) -> dict[str, Any]:
    """Write a back-off in full; delays are numbers of seconds, so that nothing is rounded."""
    return {
        "initialDelay": _seconds(backoff.initial_s),
        "maxDelay": UNCAPPED if backoff.max_s is None else _seconds(backoff.max_s),
        "multiplier": backoff.multiplier,
        "jitter": backoff.jitter.value,
        "jitterRatio": backoff.jitter_ratio,
    }


def _seconds(value: float) -> str | float:
    """Write a duration with a unit if that is exact, otherwise as a number."""
    return f"{int(value)}s" if float(value).is_integer() else value


_WRITERS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("onExitCodes", "exit_codes", write_exit_codes),
    ("onConditions", "conditions", sorted),
    ("onTerminationMessage", "termination_message", lambda pattern: {"pattern": pattern}),
    ("onLog", "log", lambda pattern: {"pattern": pattern}),
    ("onCategory", "categories", sorted),
    ("onSubcategory", "subcategories", sorted),
    ("onCauses", "causes", sorted),
    ("onSignals", "signals", lambda numbers: [write_signal(number) for number in sorted(numbers)]),
    ("containerName", "container_name", str),
    ("includeInitContainers", "include_init_containers", bool),
    ("ranShorterThan", "ran_shorter_than_s", _seconds),
    ("ranLongerThan", "ran_longer_than_s", _seconds),
    ("retryLimit", "retry_limit", int),
    ("backoff", "backoff", write_backoff),
    ("antiAffinity", "anti_affinity", lambda mode: {"mode": mode.value}),
    ("reason", "hold_reason", str),
)


def _write_rule(rule: Rule) -> dict[str, Any]:
    written: dict[str, Any] = {"name": rule.name, "action": rule.action.value}
    for field, attribute, write in _WRITERS:
        value = getattr(rule, attribute)
        if value is not None and value is not False and value != "":
            written[field] = write(value)
    if rule.mutate is not None:
        written["mutate"] = _write_mutation(rule.mutate)
    return written


def _write_mutation(mutation: Mutation) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if mutation.memory is not None:
        written["resources"] = {"memory": _write_growth(mutation.memory)}
    if mutation.avoid_same_node:
        written["affinity"] = {"avoidSameNode": True}
    return written


def _write_growth(growth: MemoryGrowth) -> dict[str, Any]:
    values = {"factor": growth.factor, "static": growth.static, "max": growth.max}
    return {name: value for name, value in values.items() if value is not None}


_ONE_TO_ONE: tuple[tuple[str, str, Any], ...] = (
    ("group", "group", ""),
    ("labels", "labels", {}),
    ("annotations", "annotations", {}),
    ("env", "env", {}),
    ("workingDir", "working_dir", None),
    ("nodeSelector", "node_selector", {}),
)


def write_job(spec: JobSpec) -> dict[str, Any]:
    """Write a job; a job of pods includes the ``spec`` of its ``batch/v1`` Job as written."""
    written: dict[str, Any] = {
        "name": spec.name,
        "queue": spec.queue,
        "command": list(spec.command),
        "resources": write_resources(spec.resources, spec.gpus),
        **write_settings(spec),
    }
    for field, attribute, default in _ONE_TO_ONE:
        value = getattr(spec, attribute)
        if value != default:
            written[field] = dict(value) if isinstance(default, dict) else value
    if spec.secrets:
        written["env"] = {**spec.env, **{variable: {"secret": name} for variable, name in spec.secrets.items()}}
    if spec.ports:
        written["ports"] = list(spec.ports)
    if spec.retry_policies:
        written["retryPolicies"] = list(spec.retry_policies)
    if spec.inline_policies:
        written["retry"] = [{"name": policy.name, **write_policy(policy)} for policy in spec.inline_policies]
    if spec.after:
        written[FIELD] = write_dependencies(spec.after)
    written |= write_watching(spec) | write_preparing(spec)
    if spec.kube is not None:
        written["kube"] = dict(spec.kube.raw)
    return written
