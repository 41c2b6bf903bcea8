"""What the tests of job sets through the service share: manifests, ids, a lab with a queue and a policy."""

from __future__ import annotations

from itertools import count
from typing import Any

from holdfast.domain.job import Ceiling, Queue, Resources
from holdfast.domain.policy.model import RetryPolicy
from holdfast.ports.engine import NodeInfo
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab

NATIVE: dict[str, Any] = {
    "apiVersion": "holdfast.dev/v1",
    "kind": "JobSet",
    "metadata": {"name": "short", "labels": {"team": "blue"}},
    "spec": {
        "queue": "small",
        "jobs": [
            {"name": "driver", "command": ["driver"]},
            {"name": "workers", "replicas": 2, "command": ["work"], "retryPolicies": ["patient"]},
        ],
    },
}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "pi"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "command": ["perl"], "resources": {"requests": {"memory": "1Gi"}}}],
            }
        }
    },
}


class Counting:
    """Ids that count."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):08d}"


def served_lab() -> SetLab:
    """Make a lab with a queue, a policy, and programs that run on."""
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    lab.store.put_queue(Queue("small", max_running=Ceiling(500_000, 1 << 40)))
    lab.store.put_policy(RetryPolicy("patient"))
    lab.plan = lambda _: exits(0, after_s=FOREVER)
    return lab


def native(**spec: object) -> dict[str, Any]:
    return {**NATIVE, "spec": {**NATIVE["spec"], **spec}}
