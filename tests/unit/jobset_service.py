"""What the tests of job sets through the service share: manifests, ids, a lab with a queue and a policy."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import Ceiling, Queue, Resources
from holdfast.domain.policy.model import RetryPolicy
from holdfast.ports.engine import NodeInfo
from holdfast.service.jobsets.explain import explained
from holdfast.service.jobsets.sets import set_named
from holdfast.service.operations.backend import Backend
from tests.integration.conftest import NoLogs
from tests.unit.conftest import NOW, VirtualClock, exits
from tests.unit.jobset_lab import FOREVER, SetLab

if TYPE_CHECKING:
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.store import Store

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

ADMIN = Caller(Principal("lab", roles=(Role.ADMIN,)), NOW)


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
    lab.store.put_entry(Queue("small", max_running=Ceiling(500_000, 1 << 40)))
    lab.store.put_entry(RetryPolicy("patient"))
    lab.plan = lambda _: exits(0, after_s=FOREVER)
    return lab


def native(**spec: object) -> dict[str, Any]:
    return {**NATIVE, "spec": {**NATIVE["spec"], **spec}}


def backend_of(store: Store, clock: Clock | None = None, ids: Ids | None = None) -> Backend:
    """Return what operations on a store work with; no program of which is a log."""
    return Backend(store, clock or VirtualClock(), ids or Counting(), NoLogs(), ADMIN.principal)


def why(lab: SetLab, name: str, *, job: str | None = None) -> Explanation[JobSet]:
    """Explain a set of a lab."""
    return explained(set_named(lab.store, name), lab.store, lab.clock.now(), job=job)
