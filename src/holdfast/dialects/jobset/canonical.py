"""Normalises manifests for comparison: amounts by value, without defaults and without what a server adds.

Defaults are those of Kubernetes' API (``pkg/apis/{core,batch}/v1/defaults.go``) and of JobSet's webhook. Fields not
listed here are compared as written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from holdfast.dialects.jobset.failure_policy import DEFAULT_RULE_NAME
from holdfast.dialects.jobset.job import default_backoff_limit, default_completions
from holdfast.dialects.jobset.quantity import parse_quantity
from holdfast.dialects.native.envelope import API_VERSION as NATIVE
from holdfast.domain.units import parse_cpu, parse_duration, parse_memory
from holdfast.domain.workloads.jobset.model import CONTROLLER
from holdfast.domain.workloads.kubejob.program import DEFAULT_GRACE_S

Written: TypeAlias = Mapping[str, Any]
_Rules: TypeAlias = Mapping[str, Any]
"""By field: rules for its content, which is left out if empty; a function that writes it; or its default."""

_ADDED = frozenset(
    {
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-tracking",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Labels and annotations that a cluster adds."""
_MODE = 0o644


def without_added(entries: Written) -> dict[str, Any]:
    """Return labels or annotations without those that a cluster adds."""
    return {name: text for name, text in entries.items() if name not in _ADDED and text is not None}


def canonical_set(manifest: Written) -> dict[str, Any]:
    """Return a job set's manifest in any form as a dictionary that is equal if and only if the meaning is."""
    native = manifest.get("apiVersion") == NATIVE
    written = _plain({name: part for name, part in manifest.items() if name != "status"}, _NATIVE if native else _SET)
    spec = mapping(written, "spec")
    network = mapping(spec, "network")
    if network and network.get("subdomain") == mapping(written, "metadata").get("name"):
        del network["subdomain"]
        if not network:
            del spec["network"]
    return written


def mapping(value: Written, *names: str) -> dict[str, Any]:
    """Return the mapping at a path in a manifest; empty if there is none."""
    inner: Any = value
    for name in names:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else {}


def canonical_template(template: Written) -> dict[str, Any]:
    """Return a pod template."""
    return _plain(template, _TEMPLATE)


def _plain(written: Written, rules: _Rules) -> dict[str, Any]:
    kept = {}
    for name, part in written.items():
        rule = rules.get(name, _as_written)
        if isinstance(rule, Mapping):
            value = _inside(part, rule)
            left_out = value is None or value in ({}, [])
        else:
            value = rule(part) if callable(rule) else part
            left_out = value is None or value == rule
        if not left_out:
            kept[name] = value
    return kept


def _inside(part: object, rules: _Rules) -> Any:  # noqa: ANN401 - of a manifest
    if isinstance(part, dict):
        return _plain(part, rules)
    return [_inside(item, rules) for item in part] if isinstance(part, list) else part


def _as_written(part: object) -> object:
    return part


def _dropped(_: object) -> None:
    """Leave the field out."""


def _amount(value: object) -> str:
    return f"{parse_quantity(value).normalize():f}"


def _entries(part: object) -> object:
    return (without_added(part) or None) if isinstance(part, dict) else part


def _amounts(part: object) -> object:
    if not isinstance(part, dict):
        return part
    kept = dict(part)
    for name, value in part.items():
        with suppress(ValueError):  # An unreadable amount is reported when it is read.
            kept[name] = _amount(value)
    return kept


def _resources(part: object) -> object:
    """Normalise requests and limits: a limit alone is also the request."""
    if not isinstance(part, dict):
        return part
    written = _plain(part, {"requests": _amounts, "limits": _amounts})
    requests = {**written.get("limits", {}), **written.get("requests", {})}
    return {**written, "requests": requests} if requests else (written or None)


def _containers(part: object) -> object:
    return (
        [_container(container) if isinstance(container, dict) else container for container in part]
        if isinstance(part, list)
        else part
    )


def _container(written: Written) -> dict[str, Any]:
    kept = _plain(written, _CONTAINER)
    image = str(kept.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    pulled = "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"
    if kept.get("imagePullPolicy") == pulled:
        del kept["imagePullPolicy"]
    return kept


def _env(part: object) -> object:
    """Normalise variables, whose order matters only if one refers to another."""
    if not isinstance(part, list) or not all(isinstance(variable, dict) for variable in part):
        return part
    variables = [_plain(variable, {"value": "", "valueFrom": _SOURCE}) for variable in part]
    if any("$(" in str(variable.get("value", "")) for variable in variables):
        return variables
    # The last of several with one name counts.
    by_name = {str(variable.get("name")): variable for variable in variables}
    return [by_name[name] for name in sorted(by_name)] or None


def _job(written: object) -> object:
    """Normalise the ``spec`` of a Job in a set, with its size filled in."""
    if not isinstance(written, dict):
        return written
    kept = _plain(written, _JOB)
    indexed = kept.get("completionMode", "Indexed") == "Indexed"
    size = (written.get("completions"), written.get("parallelism"))
    kept["parallelism"] = 1 if size[1] is None else size[1]
    kept["completions"] = default_completions(*size, indexed=indexed)
    if kept.get("backoffLimit") == default_backoff_limit(kept.get("backoffLimitPerIndex")):
        del kept["backoffLimit"]
    if kept.get("podReplacementPolicy") == ("Failed" if "podFailurePolicy" in kept else "TerminatingOrFailed"):
        del kept["podReplacementPolicy"]
    pod = mapping(kept, "template", "spec")
    if pod.get("restartPolicy") == "OnFailure":
        del pod["restartPolicy"]
    return kept


def _failure_policy(part: object) -> object:
    """Normalise a failure policy; an empty one is not the same as none."""
    if not isinstance(part, dict):
        return part
    kept = _plain(part, {"maxRestarts": 0, "restartStrategy": "Recreate"})
    if isinstance(rules := kept.get("rules"), list):
        kept["rules"] = [
            _plain(rule, {"name": f"{DEFAULT_RULE_NAME}{place}"}) if isinstance(rule, dict) else rule
            for place, rule in enumerate(rules)
        ]
    return kept


def _native_jobs(part: object) -> object:
    return [_native_job(job) if isinstance(job, dict) else job for job in part] if isinstance(part, list) else part


def _native_job(written: Written) -> dict[str, Any]:
    kept = _plain(written, _NATIVE_JOB)
    parallelism = kept.setdefault("parallelism", 1)
    kept.setdefault("completions", parallelism)
    if kept.get("backoffLimit") == (0 if "backoffLimitPerIndex" not in kept else default_backoff_limit(0)):
        del kept["backoffLimit"]
    return kept


def _by(parse: Callable[[Any], object]) -> Callable[[object], object]:
    def value(part: object) -> object:
        try:
            return None if part is None else parse(part)
        except ValueError:
            return part

    return value


def _grace(value: object) -> float | None:
    grace_s = parse_duration(value)
    return None if grace_s == DEFAULT_GRACE_S else grace_s


_FIELD = {"fieldRef": {"apiVersion": "v1"}, "resourceFieldRef": {"divisor": _by(_amount)}}
_SOURCE = {**_FIELD, "configMapKeyRef": {"optional": False}, "secretKeyRef": {"optional": False}}
_PROBE = {
    "initialDelaySeconds": 0,
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "httpGet": {"scheme": "HTTP", "path": "/"},
    "grpc": {"service": ""},
}
_CONTAINER = {
    "command": {},
    "args": {},
    "env": _env,
    "envFrom": {},
    "ports": {"protocol": "TCP"},
    "resources": _resources,
    "volumeMounts": {"readOnly": False},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "securityContext": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
}
_FILES = {"defaultMode": _MODE, "optional": False, "items": _FIELD}
_VOLUME = {
    "configMap": _FILES,
    "secret": _FILES,
    "downwardAPI": _FILES,
    "projected": {"defaultMode": _MODE},
    "hostPath": {"type": ""},
    "emptyDir": lambda part: (
        _plain(part, {"medium": "", "sizeLimit": _by(_amount)}) if isinstance(part, dict) else part
    ),
}
_POD = {
    "containers": _containers,
    "initContainers": _containers,
    "volumes": _VOLUME,
    "resources": _resources,
    "overhead": _amounts,
    "nodeSelector": {},
    "tolerations": {"operator": "Equal"},
    "imagePullSecrets": {},
    "affinity": {},
    "securityContext": {},
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": int(DEFAULT_GRACE_S),
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "shareProcessNamespace": False,
}
GIVEN_BY_SERVERS = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_METADATA = {
    "labels": _entries,
    "annotations": _entries,
    "namespace": "default",
    **dict.fromkeys(GIVEN_BY_SERVERS, _dropped),
}
_TEMPLATE = {"metadata": _METADATA, "spec": _POD}
_JOB = {
    "template": _TEMPLATE,
    "completionMode": "Indexed",
    "suspend": False,
    "selector": _dropped,
    "manualSelector": _dropped,
    "podFailurePolicy": {"rules": {"onPodConditions": {"status": "True"}}},
}
_NETWORK = {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": ""}
_OF_SETS = {
    "failurePolicy": _failure_policy,
    "successPolicy": {"operator": "All", "targetReplicatedJobs": {}},
    "network": _NETWORK,
    "coordinator": {"jobIndex": 0, "podIndex": 0},
    "suspend": False,
}
_SET = {
    "metadata": _METADATA,
    "spec": {
        **_OF_SETS,
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "managedBy": CONTROLLER,
        "replicatedJobs": {
            "replicas": 1,
            "groupName": "default",
            "dependsOn": {},
            "template": {"metadata": _METADATA, "spec": _job},
        },
    },
}
_NATIVE_JOB = {
    "replicas": 1,
    "groupName": "default",
    "dependsOn": {},
    "env": {},
    "labels": {},
    "nodeSelector": {},
    "restartPolicy": "Never",
    "podReplacementPolicy": "Failed",
    "deadline": _by(parse_duration),
    "grace": _by(_grace),
    "resources": {"cpu": _by(parse_cpu), "memory": _by(parse_memory), "gpu": 0},
}
_NATIVE = {
    "metadata": _METADATA,
    "spec": {
        **_OF_SETS,
        "startup": "AnyOrder",
        "priority": 0,
        "ttl": _by(parse_duration),
        "totalDeadline": _by(parse_duration),
        "killTimeout": _by(parse_duration),
        "jobs": _native_jobs,
    },
}
