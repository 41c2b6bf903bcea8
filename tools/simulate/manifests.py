"""Random job sets, in upstream's and in the native form, and Jobs of their own: manifests, all of them valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.policy.model import SetAction
from holdfast.domain.workloads.jobset.model import (
    EXCLUSIVE_TOPOLOGY,
    QUEUE_LABEL,
    DependencyStatus,
    Operator,
    RestartStrategy,
    StartupOrder,
)
from holdfast.domain.workloads.kubejob.model import UNLIMITED
from tools.simulate.policies import POLICIES, QUEUES

if TYPE_CHECKING:
    from tools.simulate.chance import Chance

TOPOLOGY = "zone"
"""The label of nodes that exclusive jobs ask for."""
_GROUPS = "abcd"
_ACTIONS = tuple(str(action) for action in SetAction)
_REASONS = ("BackoffLimitExceeded", "PodFailurePolicy", "DeadlineExceeded", "FailedIndexes")
_STRATEGIES = tuple(str(strategy) for strategy in RestartStrategy)


def random_set(chance: Chance, name: str) -> dict[str, Any]:
    """Draw a job set."""
    return _native(chance, name) if chance.happens(0.4) else _upstream(chance, name)


def random_batch_job(chance: Chance, name: str) -> dict[str, Any]:
    """Draw a Job of its own."""
    spec = _pods(chance, in_place=False)
    spec["template"] = {"spec": _pod(chance, spec.pop("restartPolicy"))}
    if chance.happens(0.1):
        spec["suspend"] = True
    labels = {QUEUE_LABEL: chance.choice(QUEUES)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _upstream(chance: Chance, name: str) -> dict[str, Any]:
    policy = _failure_policy(chance)
    in_place = policy.get("restartStrategy") == "InPlaceRestart"
    spec: dict[str, Any] = {"replicatedJobs": [], **_set_part(chance)}
    for group in _GROUPS[: chance.randint(1, 4)]:
        job = _pods(chance, in_place=in_place)
        job["template"] = {"spec": _pod(chance, job.pop("restartPolicy"))}
        spec["replicatedJobs"].append({"name": group, "replicas": _replicas(chance), "template": {"spec": job}})
    if _starts(chance, spec["replicatedJobs"]):
        spec["startupPolicy"] = {"startupPolicyOrder": str(StartupOrder.IN_ORDER)}
    if policy:
        spec["failurePolicy"] = policy
    if chance.happens(0.3):
        spec["ttlSecondsAfterFinished"] = chance.choice((0, 5, 30))
    metadata: dict[str, Any] = {"name": name, "labels": {QUEUE_LABEL: chance.choice(QUEUES)}}
    if chance.happens(0.15):
        metadata["annotations"] = {EXCLUSIVE_TOPOLOGY: TOPOLOGY}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _native(chance: Chance, name: str) -> dict[str, Any]:
    policy = _failure_policy(chance, extended=True)
    in_place = policy.get("restartStrategy") == "InPlaceRestart"
    spec: dict[str, Any] = {"jobs": [], "queue": chance.choice(QUEUES), **_set_part(chance)}
    for group in _GROUPS[: chance.randint(1, 4)]:
        spec["jobs"].append({"name": group, "replicas": _replicas(chance), **_native_job(chance, in_place=in_place)})
    if _starts(chance, spec["jobs"]):
        spec["startup"] = str(StartupOrder.IN_ORDER)
    if policy:
        spec["failurePolicy"] = policy
    for field, values in {"ttl": (0, 5, 30), "totalDeadline": (20, 60), "killTimeout": (2, 10)}.items():
        if chance.happens(0.2):
            spec[field] = f"{chance.choice(values)}s"
    return {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def _native_job(chance: Chance, *, in_place: bool) -> dict[str, Any]:
    job = _pods(chance, in_place=in_place, indexed=True)
    job.pop("completionMode")
    deadline = job.pop("activeDeadlineSeconds", None)
    if deadline is not None:
        job["deadline"] = f"{deadline}s"
    job["command"] = ["work"]
    job["grace"] = f"{chance.choice((0, 1, 5, 30))}s"
    job["resources"] = {"cpu": _cpu(chance)}
    if chance.happens(0.3):
        job["maxRestarts"] = chance.randint(0, 2)
    if chance.happens(0.4):
        job["retryPolicies"] = chance.sample(POLICIES, 1)
    if chance.happens(0.15):
        job["exclusiveTopology"] = TOPOLOGY
    return job


def _set_part(chance: Chance) -> dict[str, Any]:
    """Draw what both forms say in the same words."""
    part: dict[str, Any] = {}
    if chance.happens(0.1):
        part["suspend"] = True
    if chance.happens(0.4):
        part["successPolicy"] = {"operator": str(chance.choice(tuple(Operator)))}
        if chance.happens(0.4):
            part["successPolicy"]["targetReplicatedJobs"] = ["a"]
    return part


def _starts(chance: Chance, groups: list[dict[str, Any]]) -> bool:
    """Say whether they start in order; if not, some of them may depend on earlier ones."""
    if chance.happens(0.2):
        return True
    for place, group in enumerate(groups):
        if place and chance.happens(0.2):
            status = str(chance.choice(tuple(DependencyStatus)))
            group["dependsOn"] = [{"name": groups[chance.randrange(place)]["name"], "status": status}]
    return False


def _failure_policy(chance: Chance, *, extended: bool = False) -> dict[str, Any]:
    if chance.happens(0.1):
        return {}
    policy: dict[str, Any] = {"maxRestarts": chance.randint(0, 3), "restartStrategy": chance.choice(_STRATEGIES)}
    rules = [_rule(chance, f"r{place}", extended=extended) for place in range(chance.choice((0, 1, 2, 3)))]
    if rules:
        policy["rules"] = rules
    if not extended:
        return policy
    if chance.happens(0.4):
        policy["backoff"] = _backoff(chance)
    for field, values in {"window": (10, 40), "resetAfter": (5, 20)}.items():
        if chance.happens(0.2):
            policy[field] = f"{chance.choice(values)}s"
    if chance.happens(0.3):
        policy["onCertain"] = True
    return policy


def _rule(chance: Chance, name: str, *, extended: bool) -> dict[str, Any]:
    rule: dict[str, Any] = {"name": name, "action": chance.choice(_ACTIONS)}
    match chance.randrange(4):
        case 0:
            rule["onJobFailureReasons"] = ["BackoffLimitExceeded", *chance.sample(_REASONS[1:], 1)]
        case 1:
            rule["onJobFailureMessagePatterns"] = [chance.choice(("backoff limit", "exit code 3", "^Job "))]
        case 2:
            rule["targetReplicatedJobs"] = ["a"]
    if extended and chance.happens(0.4):
        rule["limit"] = chance.randint(0, 2)
    if extended and chance.happens(0.3):
        rule["backoff"] = _backoff(chance)
    return rule


def _backoff(chance: Chance) -> dict[str, Any]:
    return {"initialDelay": chance.choice(("0s", "1s", "4s")), "maxDelay": "8s", "multiplier": 2}


def _replicas(chance: Chance) -> int:
    return chance.choice((0, 1, 1, 1, 2, 2, 3, 4))


def _pods(chance: Chance, *, in_place: bool, indexed: bool = False) -> dict[str, Any]:
    """Draw a Job's rules, its restartPolicy among them, without its pod."""
    parallelism = chance.randint(1, 3)
    spec: dict[str, Any] = {"parallelism": parallelism, "restartPolicy": chance.choice(("Never", "Never", "OnFailure"))}
    if in_place:
        forever = {"backoffLimit": UNLIMITED, "podReplacementPolicy": "Failed", "completionMode": "Indexed"}
        return {**spec, **forever, "completions": parallelism}
    indexed = indexed or chance.happens(0.7)
    spec["completionMode"] = "Indexed" if indexed else "NonIndexed"
    if indexed or chance.happens(0.7):
        spec["completions"] = parallelism if chance.happens(0.5) else chance.randint(1, 3)
    spec["backoffLimit"] = chance.randint(0, 2)
    if chance.happens(0.2):
        spec["activeDeadlineSeconds"] = chance.choice((10, 20, 40))
    if indexed and chance.happens(0.25):
        spec["backoffLimitPerIndex"] = chance.randint(0, 1)
        spec["backoffLimit"] = UNLIMITED
        if chance.happens(0.5):
            spec["maxFailedIndexes"] = chance.randint(0, spec["completions"])
    if indexed and chance.happens(0.15):
        spec["successPolicy"] = {"rules": [chance.choice(({"succeededCount": 1}, {"succeededIndexes": "0"}))]}
    _replacement(chance, spec)
    return spec


def _replacement(chance: Chance, spec: dict[str, Any]) -> None:
    """Draw how failed pods are judged and replaced."""
    if spec["restartPolicy"] == "Never" and chance.happens(0.35):
        spec["podFailurePolicy"] = {"rules": _pod_rules(chance, per_index="backoffLimitPerIndex" in spec)}
        spec["podReplacementPolicy"] = "Failed"
    elif chance.happens(0.5):
        spec["podReplacementPolicy"] = chance.choice(("Failed", "TerminatingOrFailed"))


def _pod_rules(chance: Chance, *, per_index: bool) -> list[dict[str, Any]]:
    actions = ("Count", "FailJob", "Ignore", *(("FailIndex",) if per_index else ()))
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes = {"operator": chance.choice(("In", "NotIn")), "values": [1, 3]}
    return [disrupted, {"action": chance.choice(actions), "onExitCodes": codes}]


def _pod(chance: Chance, restart_policy: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["work"],
        "resources": _requests(chance),
    }
    grace_s = chance.choice((0, 1, 5, 30))
    pod: dict[str, Any] = {
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
    }
    if chance.happens(0.05):
        pod["nodeSelector"] = {"zone": chance.choice("ab")}
    return pod


def _requests(chance: Chance) -> dict[str, Any]:
    cpu = _cpu(chance)
    return {} if cpu == "100m" else {"requests": {"cpu": cpu}}


def _cpu(chance: Chance) -> str:
    return chance.choice(("50m", "100m", "250m", "500m"))
