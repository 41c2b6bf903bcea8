"""Nodes that are cordoned get nothing; nodes that are drained are emptied, and nobody pays for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.failure import EndedBy
from holdfast.domain.job import JobState, Resources
from holdfast.domain.lifecycle import Interruption
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.watching import EarlyWarning
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import NotFound
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from holdfast.service.operations.nodes import Nodes
from tests.unit.conftest import exits, job_named
from tests.unit.jobset_lab import FOREVER, SetLab, fails_first, group, manifest

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder
    from tests.unit.conftest import Lab

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

ENDLESS = SimulatedRun(0.0, None)
SAVING = SimulatedRun(0.0, None, saves_s=3.0)
TWO = (NodeInfo("n0", Resources(4000, 8 << 30, 0)), NodeInfo("n1", Resources(4000, 8 << 30, 0)))


@pytest.fixture
def two(lab: Lab) -> Lab:
    lab.use(*TWO)
    return lab


def nodes(lab: Lab) -> Nodes:
    return Nodes(lab.store, lab.clock)


def where(lab: Lab, job: str) -> list[str]:
    return [run.node for run in lab.runs(job)]


def test_a_drained_node_is_emptied_with_warnings_and_its_jobs_go_on_elsewhere_at_no_cost(two: Lab) -> None:
    spec = job_named("train", warning=EarlyWarning(20.0), checkpointed_exit_code=85)
    job = two.submit(spec, lambda order: SAVING if order.attempt == 1 else exits(0))
    two.pass_s(5)
    assert where(two, job) == ["n0"]
    nodes(two).cordon(BY, "n0", "a new kernel", drain=True)
    two.pass_s(2)
    assert (two.job(job).state, two.job(job).reason) == (JobState.RUNNING, "node n0 is being drained: a new kernel")
    two.pass_s(5)
    assert (two.job(job).state, two.job(job).retries, where(two, job)) == (JobState.SUCCEEDED, 0, ["n0", "n1"])
    first = two.attempts(job)[0]
    assert first.failure is not None
    assert first.decision is not None
    assert (first.failure.ended_by, first.failure.conditions) == (EndedBy.DRAIN, frozenset({"Evicted"}))
    assert (first.decision.action, first.decision.code) == (Action.IGNORE, DecisionCode.INTERRUPTED)
    told = " ".join(Explainer(two.store).why(job, 1).summary)
    assert "Attempt 1 was stopped on node n0" in told
    assert "the retry is not counted" in told


@pytest.mark.parametrize(
    ("action", "names", "state"),
    [
        (Action.HOLD, "Evicted", JobState.HELD),
        (Action.FAIL, "Evicted", JobState.FAILED),
        (Action.FAIL, "AppError", JobState.SUCCEEDED),
        (Action.FAIL, None, JobState.SUCCEEDED),
    ],
)
def test_a_users_rule_that_names_evicted_decides_about_a_drain_and_no_other(
    two: Lab, action: Action, names: str | None, state: JobState
) -> None:
    rule = Rule(action, "mine", conditions=None if names is None else frozenset({names}))
    spec = job_named("train", RetryPolicy("p", (rule,)))
    job = two.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    two.pass_s(5)
    nodes(two).cordon(BY, "n0", "a new kernel", drain=True)
    two.pass_s(10)
    assert two.job(job).state is state
    [first, *_] = two.attempts(job)
    assert first.decision is not None
    assert (first.decision.rule == "mine") is (names == "Evicted")
    assert "Evicted" in (first.failure or pytest.fail("no failure")).conditions


def test_where_there_is_no_other_node_jobs_wait_and_say_why_until_it_is_uncordoned(lab: Lab) -> None:
    job = lab.submit(job_named("train"), lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(5)
    nodes(lab).cordon(BY, "n0", "a new kernel", drain=True)
    lab.pass_s(5)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.QUEUED, "node n0 is being drained: a new kernel")
    lab.restart_controller()
    lab.pass_s(5)
    assert lab.job(job).state is JobState.QUEUED
    nodes(lab).uncordon(BY, "n0")
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.SUCCEEDED, 0)


def test_a_cordoned_node_keeps_what_it_has_and_gets_nothing_new(two: Lab) -> None:
    old = two.submit(job_named("old"), exits(0, after_s=30.0))
    two.pass_s(5)
    nodes(two).cordon(BY, "n0", "noisy fan")
    new = two.submit(job_named("new"), exits(0))
    big = two.submit(job_named("big", gang=2, resources=Resources(4000)), exits(0))
    two.pass_s(5)
    assert (where(two, old), where(two, new)) == (["n0"], ["n1"])
    assert two.job(old).state is JobState.RUNNING
    assert "node n0 is cordoned: noisy fan" in two.job(big).reason


def test_a_gang_with_one_rank_on_the_node_moves_as_a_whole(two: Lab) -> None:
    spec = job_named("gang", gang=2, resources=Resources(2500))
    job = two.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    two.pass_s(5)
    assert sorted(where(two, job)) == ["n0", "n1"]
    nodes(two).cordon(BY, "n1", drain=True)
    two.pass_s(5)
    assert (two.job(job).state, two.attempts(job)[0].number) == (JobState.QUEUED, 1)
    assert all(run.outcome and run.outcome.ended_by is EndedBy.DRAIN for run in two.runs(job))


def test_a_drain_that_a_controller_began_is_ended_by_the_next(two: Lab) -> None:
    spec = job_named("train", warning=EarlyWarning(10.0))
    job = two.submit(spec, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    two.pass_s(5)
    nodes(two).cordon(BY, "n0", drain=True)
    two.pass_s(5)
    two.restart_controller()
    two.pass_s(4)
    assert two.job(job).state is JobState.RUNNING
    two.pass_s(5)
    assert (two.job(job).state, where(two, job)) == (JobState.SUCCEEDED, ["n0", "n1"])


def test_a_user_who_cancels_meanwhile_waits_for_no_warning(two: Lab) -> None:
    job = two.submit(job_named("train", warning=EarlyWarning(100.0)), ENDLESS)
    two.pass_s(5)
    nodes(two).cordon(BY, "n0", drain=True)
    two.pass_s(2)
    two.ask(RequestKind.CANCEL, job)
    two.pass_s(2)
    assert two.job(job).state is JobState.CANCELLED


def test_a_failure_of_its_own_on_a_draining_node_is_judged_like_any_other(two: Lab) -> None:
    job = two.submit(job_named("bad", warning=EarlyWarning(100.0), gang=2), exits(3, after_s=5.5))
    two.pass_s(5)
    nodes(two).cordon(BY, "n0", drain=True)
    two.tick()
    two.clock.time += 1
    two.engine.observe()
    two.restart_executor()
    two.pass_s(2)
    assert two.job(job).state is JobState.FAILED


def test_edits_are_told_and_repeating_them_changes_nothing(lab: Lab) -> None:
    lab.pass_s(1)
    assert [node.name for node in nodes(lab).cordon(BY, "n0", "noisy fan").nodes] == ["n0"]
    version = lab.store.catalogue_version()
    nodes(lab).cordon(BY, "n0")
    assert lab.store.catalogue_version() == version
    nodes(lab).cordon(BY, "n0", drain=True)
    nodes(lab).cordon(BY, "n0")
    assert lab.store.catalogue().cordons["n0"].drain
    nodes(lab).uncordon(BY, "n0")
    nodes(lab).uncordon(BY, "n0")
    assert lab.store.catalogue().cordons == {}
    with pytest.raises(NotFound, match="n7") as caught:
        nodes(lab).cordon(BY, "n7")
    assert "n0" in str(caught.value.hint)


IGNORED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


@pytest.mark.parametrize(("rules", "ended"), [({"podFailurePolicy": IGNORED}, ""), ({}, "Failed")])
def test_pods_on_a_drained_node_fail_as_disrupted_and_their_jobs_rules_say_what_follows(
    rules: dict[str, object], ended: str
) -> None:
    lab = SetLab()
    lab.use(*TWO)
    set_id = lab.submit_set(
        manifest(replicatedJobs=[group("w", 1, backoffLimit=0, **rules)]), lambda _: exits(0, after_s=FOREVER)
    )
    lab.pass_s(10)
    (first,) = lab.store.runs("id-train-w-0")
    Nodes(lab.store, lab.clock).cordon(BY, first.node, drain=True)
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal.value == ended
    runs = lab.store.runs("id-train-w-0")
    assert (runs[0].interrupted, len(runs)) == (Interruption.DRAIN, 1 if ended else 2)
    assert {run.node for run in runs[1:]} <= {"n0", "n1"} - {first.node}


@pytest.mark.parametrize("drained", [False, True])
def test_a_pod_that_waits_to_begin_again_in_its_place_begins_elsewhere_once_its_node_is_drained(
    *, drained: bool
) -> None:
    lab = SetLab()
    lab.use(*(NodeInfo(f"n{number}", Resources(1000, 8 << 30, 0)) for number in range(3)))
    rules: dict[str, Any] = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    one = group("w", 2, parallelism=1, completions=1, **rules)
    container = one["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": 1}}
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    plan = fails_first("train-w-0")
    stubborn = SimulatedRun(duration_s=60.0, term_delay_s=8.0)  # the others wait for it at the barrier
    starts: Counter[str] = Counter()

    def plan_of(order: RunOrder) -> SimulatedRun:
        starts[order.job_name] += 1
        return stubborn if order.job_name == "train-w-1" and starts[order.job_name] == 1 else plan(order)

    set_id = lab.submit_set(manifest(replicatedJobs=[one], failurePolicy=policy), plan_of)
    lab.pass_s(5)
    (first,) = lab.store.runs("id-train-w-0")
    if drained:
        Nodes(lab.store, lab.clock).cordon(BY, first.node, drain=True)
    lab.pass_s(60)
    runs = lab.store.runs("id-train-w-0")
    assert len(runs) == 2
    assert (runs[1].node == first.node) is not drained
    assert lab.store.workload(JobSet, set_id).ended == "Completed"
