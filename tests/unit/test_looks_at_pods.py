"""A look at the pods of a job is decided from facts alone: what it orders, without a controller."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.classify import NO_CATEGORIES
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import Attempt, Job, Resources, Run
from holdfast.domain.lifecycle import Interruption, RunStatus
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import LimitUse, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.judge import Judgement, Ruleset
from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, RestartPolicy
from holdfast.domain.workloads.kubejob.pods import (
    Barrier,
    LivePod,
    PodFacts,
    TimeLimits,
)
from holdfast.domain.workloads.kubejob.program import PodPlan, Program
from holdfast.domain.workloads.kubejob.reconcile_pods import PodReconciler
from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_000.0
NODE = ("here", "n0")
JOB = Job("j", "j", "default", 0, NOW, "", kind=KUBEJOB, request=Resources(1000))
CRASHED = RunOutcome((ContainerResult(3),), started_at=NOW - 5, ended_at=NOW - 1, node="n0")


def a_run(uid: str, status: RunStatus = RunStatus.RUNNING, outcome: RunOutcome | None = None) -> Run:
    rank = int(uid.split("-")[2])
    return Run(uid, "j", 1, rank, status, NOW - 5, *NODE, started_at=NOW - 5, outcome=outcome)


def looking(
    runs: Sequence[Run],
    *,
    spec: KubeJobSpec | None = None,
    in_place: bool = False,
    barrier: Barrier = Barrier(),  # noqa: B008 - it is immutable
    useless: bool = False,
    state: KubeJobState | None = None,
) -> PodReconciler:
    """Begin a look at a job with a pod for each of these runs."""
    numbers = count(10)
    facts = PodFacts(
        job=JOB,
        attempt=Attempt("j", 1),
        plan=PodPlan(
            spec or KubeJobSpec(parallelism=len(runs), completions=9), Program(), in_place=in_place, max_restarts=3
        ),
        runs={run.uid: run for run in runs},
        barrier=barrier,
        categories=NO_CATEGORIES,
        cap=None,
        patience=TimeLimits(30.0, 60.0),
        since=lambda at: at,
        fresh_uid=lambda rank: f"j-1-{rank}-{next(numbers)}",
        judging=lambda _: Judgement(Ruleset(PolicySet.compile(()), NO_CATEGORIES, RetrySettings())),
        useless=lambda _: useless,
    )
    pods = [LivePod(PodRecord(f"p{run.rank}", run.rank, run=run.uid), run) for run in runs]
    record = KubeJobRecord("j", state=state or KubeJobState(started_at=NOW - 10, active=len(runs)))
    return PodReconciler(facts, record, {pod.record.name: pod for pod in pods}, NOW)


def test_a_job_without_pods_has_as_many_ask_for_a_place_as_it_may() -> None:
    look = looking([], spec=KubeJobSpec(parallelism=2, completions=5))
    look.reconcile()
    assert look.enqueue == ["j-0-10", "j-1-11"]
    assert [pod.first for pod in look.pods.values()] == ["j-1-0-10", "j-1-1-11"]


def test_a_pod_that_failed_is_judged_and_forgotten_and_replaced_later() -> None:
    look = looking([a_run("j-1-0-1", RunStatus.ERROR, CRASHED)])
    look.reconcile()
    decision = look.orders.note["j-1-0-1"].decision
    assert decision is not None
    assert (decision.reason, decision.delay_s) == ("replaced", 5.0)
    assert (look.orders.forget, look.pods) == (["j-1-0-1"], {})
    assert look.outlook(awaits_domain=False).look_at == NOW + 5.0


def test_a_program_that_starts_again_in_its_pod_waits_first_and_its_job_sees_no_failure() -> None:
    spec = KubeJobSpec(restart_policy=RestartPolicy.ON_FAILURE)
    look = looking([a_run("j-1-0-1", RunStatus.ERROR, CRASHED)], spec=spec)
    look.reconcile()
    assert ([*look.orders.note], look.orders.forget) == (["j-1-0-1"], ["j-1-0-1"])
    assert (look.pods["p0"].record.restarts, look.pods["p0"].record.due) == (1, NOW + 10.0)
    assert look.record.state.failed == 0


def test_a_program_that_kubernetes_starts_again_avoids_nothing_of_an_earlier_policy_and_keeps_its_memory() -> None:
    look = looking(
        [a_run("j-1-0-1", RunStatus.ERROR, CRASHED)], spec=KubeJobSpec(restart_policy=RestartPolicy.ON_FAILURE)
    )
    pod = look.pods["p0"]
    record = evolve(pod.record, avoid_node="n1", avoid_devices=("0@n1",), avoid_nodes=("n1",), memory=1 << 30)
    look.pods["p0"] = evolve(pod, record=record)
    look.reconcile()
    record = look.pods["p0"].record
    assert (record.avoid_node, record.avoid_devices, record.avoid_nodes, record.memory) == (None, (), (), 1 << 30)


def test_a_program_that_may_not_start_again_in_its_pod_says_which_limit_that_was() -> None:
    spec = KubeJobSpec(restart_policy=RestartPolicy.ON_FAILURE)
    look = looking([a_run("j-1-0-1", RunStatus.ERROR, CRASHED)], spec=spec)
    disabled = Ruleset(PolicySet.compile(()), NO_CATEGORIES, RetrySettings(global_max_retries=0))
    look.facts = evolve(look.facts, cap=0, judging=lambda _: Judgement(disabled))
    look.reconcile()
    decision = look.orders.note["j-1-0-1"].decision
    assert (look.pods, decision and decision.limits) == ({}, (LimitUse("globalMaxRetries", 0, 0),))


def test_a_pod_keeps_its_place_at_the_barrier_while_the_others_are_stopped_and_starts_there_behind_it() -> None:
    crashed, other = a_run("j-1-0-1", RunStatus.ERROR, CRASHED), a_run("j-1-1-2")
    look = looking([crashed, other], in_place=True)
    look.reconcile()
    assert ([*look.orders.note], look.orders.forget) == (["j-1-0-1"], ["j-1-0-1"])
    assert [event.reason for event in look.notices] == ["RestartInPlace"]
    kept = look.pods["p0"].kept
    assert kept is not None
    assert [*look.orders.keep.values()] == [kept]
    assert (kept.uid, look.pods["p0"].record.in_place) == ("j-1-0-1/kept", 1)

    behind = looking([crashed, other], in_place=True, barrier=Barrier(previous=0))
    behind.reconcile()
    assert [*behind.orders.put] == [other.uid]

    passed = looking([other], in_place=True, barrier=Barrier(previous=0, current=1))
    passed.pods = {"p0": look.pods["p0"]}
    passed.reconcile()
    (start,) = passed.orders.start
    assert (passed.orders.give_back, passed.orders.keep) == (["j-1-0-1/kept"], {})
    assert (start.uid, start.executor, start.node) == (passed.pods["p0"].record.run, *NODE)


def test_a_kept_place_that_is_of_no_use_is_given_back_and_another_is_asked_for() -> None:
    look = looking([], in_place=True, useless=True, spec=KubeJobSpec())
    record = PodRecord("p0", 0, run="j-1-0-1", waiting=True)
    look.pods["p0"] = LivePod(record, kept=a_run("j-1-0-1"))
    look.record = evolve(look.record, state=evolve(look.record.state, active=1))
    look.reconcile()
    assert (look.orders.give_back, look.enqueue) == (["j-1-0-1"], ["p0"])
    assert look.pods["p0"].record.place_given_up


@pytest.mark.parametrize("status", [RunStatus.CREATING, RunStatus.TERMINATING])
def test_a_program_that_nobody_hears_of_is_given_up_in_the_end(status: RunStatus) -> None:
    patient = looking([evolve(a_run("j-1-0-1", status), status_since=NOW - 29.0)])
    patient.reconcile()
    assert not patient.orders.put
    look = looking([evolve(a_run("j-1-0-1", status), status_since=NOW - 61.0)])
    look.reconcile()
    assert [run.status for run in look.orders.put.values()] == [RunStatus.ERROR]


def test_a_job_that_ends_has_what_waits_for_a_place_ask_no_more_and_is_over_at_once() -> None:
    late = KubeJobSpec(active_deadline_s=5.0)
    look = looking([], spec=late)
    look.pods["p0"] = LivePod(PodRecord("p0", 0), request="j-1-0-1")
    look.reconcile()
    assert (look.dequeue, look.pods) == (["j-1-0-1"], {})
    over = look.record.state.finished
    assert over is not None
    assert (over.reason, look.record.state.failed, look.record.state.terminating) == ("DeadlineExceeded", 1, 0)


def test_a_pod_that_is_to_leave_its_place_says_why_and_is_stopped_once() -> None:
    look = looking([a_run("j-1-0-1"), a_run("j-1-1-2")])
    for _ in range(2):
        look.evict(Interruption.EVICT, "out of memory", node="", uid="j-1-1-2")
        runs = [*look.orders.put.values()]
        assert [(run.uid, run.interrupted) for run in runs] == [("j-1-1-2", Interruption.EVICT)]
        assert look.pods["p1"].record.taken == "out of memory"
        look.facts = evolve(look.facts, runs={run.uid: run for run in runs})
