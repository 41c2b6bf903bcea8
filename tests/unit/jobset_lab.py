"""A lab for job sets: submits them to the real controller in virtual time, and looks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.compiled.codec import SetChange, dump_change, dump_set_spec, suspending
from holdfast.dialects.jobset.loading import dump_set
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.ports.engine import RunPhase
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from holdfast.service.jobsets.sets import jobs_of
from holdfast.service.steering.jobsets import JOB_SETS
from tests.unit.conftest import Lab, exits
from tools.cases.kube_reading import read_kube

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

FOREVER = 10_000.0


def manifest(name: str = "train", **spec: object) -> dict[str, Any]:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def group(name: str, replicas: int = 1, **job: object) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod = {"restartPolicy": job.pop("restartPolicy", "Never"), "containers": [container]}
    spec = {"backoffLimit": 0, **job, "template": {"spec": pod}}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def compiled(document: dict[str, Any]) -> JobSetSpec:
    spec = read_kube(document).manifest
    assert isinstance(spec, JobSetSpec)
    return spec


def change_to(document: dict[str, Any]) -> str:
    return dump_change(SetChange(dump_set(document), dump_set_spec(compiled(document))))


class SetLab(Lab):
    """A lab that can submit job sets; ``plan`` says what every pod does."""

    plan: Callable[[RunOrder], SimulatedRun]

    def submit_set(self, document: dict[str, Any], plan: Callable[[RunOrder], SimulatedRun]) -> str:
        spec = compiled(document)
        self.plan = plan
        now = self.clock.now()
        text, stored = dump_set(document), dump_set_spec(spec)
        row = JobSet(
            id=f"set-{spec.name}", name=spec.name, created_at=now, manifest=text, spec=stored, queue=spec.queue_name
        )
        jobs = [job for job, _ in jobs_of(row, spec, "id-{}".format)]
        self.store.submit(Submission(jobs, owner=row))
        return row.id

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return self.plan(order)

    def ask_set(self, kind: RequestKind, set_id: str, **payload: object) -> None:
        text = json.dumps(payload) if payload else ""
        if kind in {RequestKind.HOLD, RequestKind.RELEASE}:
            row = JOB_SETS.as_accepted(self.store.asked_of(JobSet, set_id))
            text = suspending(row, suspend=kind is RequestKind.HOLD) or text
        self.store.append(Request(kind, (set_id,), self.clock.now(), payload=text))

    def engine_runs(self) -> list[str]:
        """List runs that have not ended, as their engine sees them."""
        return [uid for uid, seen in self.engine.observe().items() if seen.phase is not RunPhase.FINISHED]

    def states(self) -> dict[str, str]:
        return {name: str(self.store.job(name).state) for name in sorted({order.job_name for order in self.orders})}


def fails_first(name: str, times: int = 1) -> Callable[[RunOrder], SimulatedRun]:
    """Plan that one job fails in its first attempts, and everything else ends well."""
    left = [times]

    def plan(order: RunOrder) -> SimulatedRun:
        if order.job_name == name and left[0] > 0:
            left[0] -= 1
            return exits(3)
        return exits(0, after_s=5.0)

    return plan


def rule(action: str, **matchers: object) -> dict[str, Any]:
    return {"action": action, "name": f"rule{action}", **matchers}


def attempts_started(lab: SetLab) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for order in lab.orders:
        found.setdefault(order.job_name, []).append(order.attempt)
    return found
