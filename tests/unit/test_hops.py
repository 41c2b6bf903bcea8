"""Between a failure and the next start each thing is asked once: what failed, what follows, and what moves on by it."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from holdfast.ports.engine import RunOrder

COUNTED = {
    "Gangs.reconcile": "reconcile of gangs",
    "classify": "classify",
    "decide": "decide",
    "ControllerState.steps": "steps",
    "SqlControllerStore.news": "news read",
    "converge": "converge",
    "KubeJobs.reconcile": "reconcile of Jobs",
}


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count what is asked while the context is open."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        name = COUNTED.get(frame.f_code.co_qualname)
        if event == "call" and name is not None:
            calls[name] += 1
            calls.update(f"looks at {key}" for key in frame.f_locals.get("keys", ()))

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def fails_once(order: RunOrder) -> SimulatedRun:
    return exits(3, after_s=2.0) if order.attempt == 1 else exits(0, after_s=50.0)


def test_a_failed_job_is_classified_and_decided_once_and_moved_on_in_one_look(lab: Lab) -> None:
    job = lab.submit(job_named("train", retrying(1)), fails_once)
    lab.pass_s(1)
    lab.clock.time += 5.0
    with counting() as calls:
        while len(lab.runs(job)) == 1:
            lab.step()
    assert lab.store.job(job).attempt == 2
    assert calls["classify"] == calls["decide"] == 1
    assert calls["reconcile of gangs"] == 1
    assert calls["steps"] == 3  # on the way to its end, its end, and on the way to its next start


def test_news_are_read_when_something_was_written_and_not_with_each_tick(lab: Lab) -> None:
    job = lab.submit(job_named("train"), fails_once)
    lab.pass_s(1)
    with counting() as calls:
        lab.pass_s(0.9, every_s=0.1)
    assert calls["news read"] <= 1  # once a second, to find what is damaged
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(0.1)
    assert lab.job(job).state is JobState.CANCELLED


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_failed_pod_is_classified_and_decided_once_whoever_asks(policy: str) -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    workers = group("w", 1, backoffLimit=0)
    workers["template"]["spec"]["template"]["spec"]["restartPolicy"] = policy
    set_id = lab.submit_set(manifest(replicatedJobs=[workers]), lambda _: exits(3, after_s=2.0))
    with counting() as calls:
        lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).ended == "Failed"
    judged = [run for run in lab.store.runs("id-train-w-0") if run.failure is not None]
    assert calls["classify"] == calls["decide"] == len(judged) == 1


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_a_set_is_looked_at_twice_between_the_failure_of_a_pod_and_its_next_start(strategy: str) -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    policy = {"maxRestarts": 2, "restartStrategy": strategy}
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy=policy)
    lab.submit_set(
        document, lambda order: fails_once(order) if order.job_name == "train-w-0" else exits(0, after_s=50.0)
    )
    while not all(lab.store.runs(f"id-train-w-{index}") for index in range(3)):
        lab.step()
    lab.clock.time += 2.0
    with counting() as calls:
        while not all(len(lab.store.runs(f"id-train-w-{index}")) > 1 for index in range(3)):
            lab.step()
            lab.clock.time += 0.1
    assert lab.clock.time < 1_000_010.0
    assert calls["converge"] == 2
    assert 1 <= calls["reconcile of Jobs"] <= 4
    assert max(calls[f"looks at id-train-w-{index}"] for index in range(3)) <= 3  # one of them hears that it runs


def test_how_many_jobs_of_a_set_have_their_places_is_shown_within_a_second_though_no_rule_asks_for_it() -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    set_id = lab.submit_set(
        manifest(replicatedJobs=[group("w", 2)]), lambda _: SimulatedRun(start_delay_s=60.0, duration_s=None)
    )
    while not all(lab.store.runs(f"id-train-w-{index}") for index in range(2)):
        lab.step()
    lab.clock.time += 1.0
    lab.step()
    (workers,) = lab.store.workload(JobSet, set_id).state.groups
    assert (workers.active, workers.ready) == (2, 0)
