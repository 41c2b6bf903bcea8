"""Whose place is taken has failed of a preemption: it is warned, its own budget pays, and rules that name it decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import Cause, EndedBy
from holdfast.domain.job import JobState, Resources
from holdfast.domain.lifecycle import Interruption
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, Rule
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.spec import PodProgram
from holdfast.domain.workloads.watching import EarlyWarning
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from tests.unit.conftest import exits, job_named, retrying
from tests.unit.jobset_lab import FOREVER, SetLab, group, manifest

if TYPE_CHECKING:
    from tests.unit.conftest import Lab

ENDLESS = SimulatedRun(0.0, None)
SLOW = SimulatedRun(0.0, None, term_delay_s=8.0)
BY_HAND = Rule(Action.RETRY, "mine", conditions=frozenset({"Preempted"}), backoff=Backoff(initial_s=10.0))
TWO = (NodeInfo("n0", Resources(4000, 8 << 30, 0)), NodeInfo("n1", Resources(4000, 8 << 30, 0)))


def preempt(lab: Lab, job: str, reason: str = "", node: str = "") -> None:
    lab.ask(RequestKind.PREEMPT, job, reason, payload=node)


def test_a_preempted_job_is_warned_fails_as_preempted_and_runs_again_on_a_budget_of_its_own(lab: Lab) -> None:
    spec = job_named("train", warning=EarlyWarning(20.0), checkpointed_exit_code=None)
    job = lab.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    preempt(lab, job, "make room")
    lab.pass_s(15)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.RUNNING, "asked by ann: make room")
    lab.pass_s(10)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.SUCCEEDED, 1)
    assert lab.job(job).counters == {"infrastructure/preempted": 1}
    first = lab.attempts(job)[0]
    assert first.failure is not None
    assert (first.failure.cause, first.failure.ended_by) == (Cause.AGENT_TRANSIENT, EndedBy.PREEMPTION)
    assert first.failure.conditions == frozenset({"Preempted"})
    told = " ".join(Explainer(lab.store).why(job, 1).summary)
    assert "Preempted: asked by ann: make room" in told
    assert "infrastructure" in told


def test_a_back_off_counts_from_the_preemption_and_not_from_when_the_program_had_stopped(lab: Lab) -> None:
    spec = job_named("train", RetryPolicy("p", (BY_HAND,)), grace_s=30.0)
    job = lab.submit(spec, lambda order: SLOW if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    preempt(lab, job)
    asked_at = lab.clock.now()
    lab.pass_s(9)
    assert lab.job(job).state is JobState.BACKOFF
    assert lab.job(job).retry_at == pytest.approx(asked_at + 10.0, abs=1.0)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        (Rule(Action.HOLD, "mine", conditions=frozenset({"Preempted"})), JobState.HELD),
        (Rule(Action.FAIL, "mine", conditions=frozenset({"Preempted"})), JobState.FAILED),
        (Rule(Action.FAIL, "mine", conditions=frozenset({"Evicted"})), JobState.SUCCEEDED),
    ],
)
def test_a_rule_that_names_preempted_decides(lab: Lab, rule: Rule, state: JobState) -> None:
    spec = job_named("train", RetryPolicy("p", (rule,)))
    job = lab.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    preempt(lab, job)
    lab.pass_s(20)
    assert lab.job(job).state is state


def test_a_gang_is_preempted_as_a_whole_and_fails_once(lab: Lab) -> None:
    lab.use(*TWO)
    spec = job_named("train", retrying(1), gang=2, resources=Resources(3000))
    job = lab.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    preempt(lab, job, node="n1")
    lab.pass_s(20)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.SUCCEEDED, 1)
    ended = [run.outcome.ended_by for run in lab.runs(job) if run.outcome is not None and run.attempt == 1]
    assert ended == [EndedBy.PREEMPTION] * 2


def test_a_job_that_is_not_where_somebody_wants_a_place_is_left_alone(lab: Lab) -> None:
    lab.use(*TWO)
    job = lab.submit(job_named("train"), ENDLESS)
    waiting = lab.submit(job_named("waits", resources=Resources(64_000)))
    lab.pass_s(5)
    preempt(lab, job, node="n1")
    preempt(lab, waiting)
    lab.pass_s(20)
    assert [(lab.job(one).state, lab.job(one).attempt) for one in (job, waiting)] == [
        (JobState.RUNNING, 1),
        (JobState.QUEUED, 0),
    ]


def test_a_job_that_ends_by_itself_at_that_moment_ends_as_it_ended(lab: Lab) -> None:
    good = lab.submit(job_named("good"), exits(0, after_s=5.0))
    bad = lab.submit(job_named("bad"), exits(3, after_s=5.0))
    lab.pass_s(4)
    lab.transport.broken = True
    lab.pass_s(3)
    preempt(lab, good)
    preempt(lab, bad)
    lab.tick()
    lab.transport.broken = False
    lab.pass_s(5)
    assert [lab.job(one).state for one in (good, bad)] == [JobState.SUCCEEDED, JobState.FAILED]
    failure = lab.attempts(bad)[0].failure
    assert failure is not None
    assert failure.conditions == frozenset({"AppError"})


def test_a_controller_that_dies_in_the_middle_of_a_preemption_loses_nothing_of_it(lab: Lab) -> None:
    job = lab.submit(job_named("train", grace_s=30.0), lambda order: SLOW if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    preempt(lab, job, "make room")
    lab.pass_s(2)
    lab.restart_controller()
    lab.pass_s(20)
    assert lab.job(job).state is JobState.SUCCEEDED
    first = lab.attempts(job)[0]
    assert first.failure is not None
    assert (first.failure.conditions, first.failure.message) == (frozenset({"Preempted"}), "asked by ann: make room")


def test_asking_twice_preempts_once_and_who_cancels_or_holds_meanwhile_has_the_last_word(lab: Lab) -> None:
    lab.use(*TWO)
    jobs = [
        lab.submit(job_named(name, grace_s=30.0), lambda order: SLOW if order.attempt == 1 else exits(0))
        for name in ("twice", "cancelled", "held")
    ]
    lab.pass_s(5)
    for job in jobs:
        preempt(lab, job)
    lab.pass_s(2)
    preempt(lab, jobs[0])
    lab.ask(RequestKind.CANCEL, jobs[1])
    lab.ask(RequestKind.HOLD, jobs[2])
    lab.pass_s(20)
    assert [(lab.job(job).state, lab.job(job).attempt) for job in jobs] == [
        (JobState.SUCCEEDED, 2),
        (JobState.CANCELLED, 1),
        (JobState.HELD, 1),
    ]


def test_a_job_of_another_systems_door_is_not_run_again_unless_a_policy_says_so(lab: Lab) -> None:
    pod = PodProgram(Program(command=("true",)), {})
    alone = lab.submit(job_named("alone", pod=pod), ENDLESS)
    asked = lab.submit(
        job_named("asked", RetryPolicy("p", (BY_HAND,)), pod=pod),
        lambda order: ENDLESS if order.attempt == 1 else exits(0),
    )
    lab.pass_s(5)
    for job in (alone, asked):
        preempt(lab, job)
    lab.pass_s(30)
    assert [lab.job(job).state for job in (alone, asked)] == [JobState.FAILED, JobState.SUCCEEDED]


IGNORED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


@pytest.mark.parametrize(("rules", "ended"), [({"podFailurePolicy": IGNORED}, ""), ({}, "Failed")])
def test_pods_of_a_job_set_fail_as_disrupted_and_their_jobs_rules_say_what_follows(
    rules: dict[str, object], ended: str
) -> None:
    lab = SetLab()
    set_id = lab.submit_set(
        manifest(replicatedJobs=[group("w", 1, backoffLimit=0, **rules)]), lambda _: exits(0, after_s=FOREVER)
    )
    lab.pass_s(10)
    preempt(lab, "id-train-w-0")
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal.value == ended
    runs = lab.store.runs("id-train-w-0")
    assert (runs[0].interrupted, len(runs)) == (Interruption.PREEMPT, 1 if ended else 2)
    assert (runs[0].outcome or pytest.fail("it runs")).ended_by is EndedBy.PREEMPTION
