"""Measures sets of many jobs of which one fails: restart them all, or only that one.

Twice: the passes alone, and everything from the failure observed to the last replacement handed out, with the real
controller and store over a simulated engine, one node for each job.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.rig import Rig
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.policy.model import SetAction, SetRule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import Child, ChildPhase, CreateChild, DeleteChild
from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec, ReplicatedJob
from holdfast.domain.workloads.jobset.reconcile import ReconcileInput, converge
from holdfast.domain.workloads.jobset.state import JobSetState
from holdfast.engines.simulated.life import SimulatedRun

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

SIZES = (1_000, 5_000, 15_000)
GROUPS = 5
_ROUNDS = 3


def measure() -> dict[str, float]:
    """Return seconds: from the failure observed to the orders that answer it, the best of a few rounds."""
    found = {}
    for size in SIZES:
        for action in (SetAction.RESTART_JOB_SET, SetAction.RESTART_JOB):
            found[f"{action} of {size:,} jobs"] = min(_once(size, action) for _ in range(_ROUNDS))
    return found


def _once(size: int, action: SetAction) -> float:
    groups = tuple(ReplicatedJob(name=f"workers{number}", replicas=size // GROUPS) for number in range(GROUPS))
    policy = FailurePolicy(max_restarts=10, rules=(SetRule(action, "rule"),))
    spec = JobSetSpec(name="train", replicated_jobs=groups, failure=policy)
    first = converge(spec, JobSetState(), [], ReconcileInput(0.0))
    jobs = [_running(order) for order in first.orders if isinstance(order, CreateChild)]
    state = converge(spec, first.state, jobs, ReconcileInput(1.0)).state
    jobs[-1] = evolve(jobs[-1], phase=ChildPhase.FAILED, reason="BackoffLimitExceeded", failed_at=2.0)

    began = time.perf_counter()
    restarted = converge(spec, state, jobs, ReconcileInput(2.0))
    gone = {order.name for order in restarted.orders if isinstance(order, DeleteChild)}
    left = [job for job in jobs if job.name not in gone]
    again = converge(spec, restarted.state, left, ReconcileInput(3.0))
    took = time.perf_counter() - began
    if len(again.orders) != len(gone):
        msg = f"{len(gone)} jobs went and {len(again.orders)} came"
        raise RuntimeError(msg)
    return took


def _running(order: CreateChild) -> Child:
    return Child(
        name=order.name,
        group=order.group,
        index=order.index,
        global_index=order.global_index,
        active_pods=1,
        ready_pods=1,
    )


def restart(size: int, action: SetAction) -> dict[str, float]:
    """Measure one failure in a set of ``size`` jobs: seconds until the last replacement was handed out."""

    def script(order: RunOrder) -> SimulatedRun:
        fails = order.attempt == 1 and order.job_name == "train-workers0-7"
        return SimulatedRun(duration_s=10.0 if fails else _LONG_S, outcome=_BROKEN if fails else RunOutcome())

    before = psutil.Process().memory_info().rss
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        rig = Rig(Path(folder), nodes=size, cpu_m=1000, script=script)
        rig.submit_set(_manifest(size, action))
        while len(rig.engine.observe()) < size:
            rig.step(0.01)
        for _ in range(3):
            rig.step(0.01)
            while rig.load_once().tick().more:
                pass
        rig.clock.time += 10.0
        wanted = size if action is SetAction.RESTART_JOB_SET else 1
        began = time.perf_counter()
        while _second(rig) < wanted:
            rig.step(0.01)
        took = time.perf_counter() - began
        held = psutil.Process().memory_info().rss - before
        rig.close()
    return {"restart_s": took, "memory_mb": held / 1e6}


def _second(rig: Rig) -> int:
    return sum(uid.split("-")[-3] == "2" for uid in rig.engine.observe())


def _manifest(size: int, action: SetAction) -> dict[str, object]:
    container = {"name": "main", "command": ["true"], "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {
            "failurePolicy": {"maxRestarts": 3, "rules": [{"name": "again", "action": action.value}]},
            "replicatedJobs": [
                {
                    "name": f"workers{number}",
                    "replicas": 1000,
                    "template": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}},
                }
                for number in range(size // 1000)
            ],
        },
    }


_BROKEN = RunOutcome(containers=(ContainerResult(1, reason="Error"),))
_LONG_S = 1000.0


if __name__ == "__main__":
    for name, seconds in measure().items():
        print(f"{name:40} {seconds * 1000:8.1f} ms")
