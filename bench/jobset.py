"""Measures one pass over sets of many jobs of which one has failed: restart them all, or only that one."""

from __future__ import annotations

import time
from dataclasses import replace

from holdfast.domain.jobset.model import FailurePolicy, JobSetSpec, ReplicatedJob
from holdfast.domain.jobset.reconcile import Look, settle
from holdfast.domain.jobset.state import Child, ChildPhase, CreateJob, DeleteJob, JobSetState
from holdfast.domain.policy.model import SetAction, SetRule

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
    first = settle(spec, JobSetState(), [], Look(0.0))
    jobs = [_running(order) for order in first.orders if isinstance(order, CreateJob)]
    state = settle(spec, first.state, jobs, Look(1.0)).state
    jobs[-1] = replace(jobs[-1], phase=ChildPhase.FAILED, reason="BackoffLimitExceeded", failed_at=2.0)

    began = time.perf_counter()
    restarted = settle(spec, state, jobs, Look(2.0))
    gone = {order.name for order in restarted.orders if isinstance(order, DeleteJob)}
    left = [job for job in jobs if job.name not in gone]
    again = settle(spec, restarted.state, left, Look(3.0))
    took = time.perf_counter() - began
    if len(again.orders) != len(gone):
        msg = f"{len(gone)} jobs went and {len(again.orders)} came"
        raise RuntimeError(msg)
    return took


def _running(order: CreateJob) -> Child:
    return Child(
        name=order.name,
        group=order.group,
        index=order.index,
        global_index=order.global_index,
        active_pods=1,
        ready_pods=1,
    )


if __name__ == "__main__":
    for name, seconds in measure().items():
        print(f"{name:40} {seconds * 1000:8.1f} ms")
