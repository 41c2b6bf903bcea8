"""A retry by `mutate.affinity.avoidSameNode` runs on a node where its job was never tried, or the job fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.devices import Device
from holdfast.domain.events.jobs import JobRetryScheduled
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.placement.fit import Place, Shape, why_not
from holdfast.domain.policy.model import Action, AntiAffinity, Backoff, Mutation, RetryPolicy, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, SetEvent
from holdfast.domain.workloads.judge import nothing_untried
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from tests.unit.conftest import Lab, ends_with, exits, job_named
from tests.unit.jobset_lab import SetLab
from tests.unit.test_drains import BY, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.job import Run
    from holdfast.ports.engine import RunOrder

STAYS = SimulatedRun(duration_s=None)
NO_UNTRIED = "retry granted, but no untried node fits the job: it was tried on"


def untried(*rules: Rule, delay_s: float = 0.0, limit: int | None = None) -> RetryPolicy:
    one = Rule(Action.RETRY, "untried", mutate=Mutation(avoid_same_node=True))
    return RetryPolicy("p", (*rules, one), limit, backoff=Backoff(delay_s, None, 1.0))


def node(name: str, cpu_m: int = 4000) -> NodeInfo:
    return NodeInfo(name, Resources(cpu_m, 8 << 30))


def lab_of(*names: str) -> Lab:
    lab = Lab()
    lab.use(*map(node, names))
    return lab


def where(lab: Lab, job: str) -> list[str]:
    return [run.node for run in lab.runs(job)]


def codes(lab: Lab, job: str) -> list[str]:
    return [str(each.decision.code) for each in lab.attempts(job) if each.decision is not None]


def fails_until(attempt: int) -> Callable[[RunOrder], SimulatedRun]:
    return lambda order: exits(1 if order.attempt < attempt else 0)


def test_every_node_is_tried_once_and_then_the_job_fails_of_that() -> None:
    lab = lab_of("a", "b", "c")
    job = lab.submit(job_named("job", untried()), exits(1))
    lab.pass_s(20)
    assert (lab.job(job).state, where(lab, job)) == (JobState.FAILED, ["a", "b", "c"])
    assert codes(lab, job) == ["retry", "retry", "retry_unschedulable"]
    decisions = [each.decision for each in lab.attempts(job) if each.decision is not None]
    assert [each.avoid_nodes for each in decisions] == [("a",), ("a", "b"), ()]
    assert decisions[-1].reason == f"{NO_UNTRIED} a, b, c"
    assert (decisions[-1].action, decisions[-1].counter) == (Action.FAIL, None)
    told = [each.event for each in lab.store.events(limit=1000)]
    assert [(each.avoid_nodes, each.tried) for each in told if isinstance(each, JobRetryScheduled)] == [
        (("a",), ("a",)), (("a", "b"), ("b",)),
    ]  # fmt: skip
    why = " ".join(Explainer(lab.store).why(job).summary)
    assert f"It is not retried: {NO_UNTRIED} a, b, c." in why
    before = " ".join(Explainer(lab.store).why(job, 2).summary)
    assert "It is kept off a, b, where it was tried, and fails if no other node could ever run it." in before


def test_where_there_is_one_node_the_first_failure_is_the_last() -> None:
    lab = lab_of("only")
    job = lab.submit(job_named("job", untried()), exits(1))
    lab.pass_s(5)
    assert (lab.job(job).state, len(lab.attempts(job)), codes(lab, job)) == (
        JobState.FAILED,
        1,
        ["retry_unschedulable"],
    )


def test_nodes_that_are_tried_under_other_rules_count_and_only_a_rule_that_says_so_keeps_off_them() -> None:
    lab = lab_of("a", "b", "c")
    anywhere = Rule(Action.RETRY, "anywhere", termination_message="anywhere")
    says = RunOutcome(containers=(ContainerResult(1, reason="Error", message="anywhere"),))
    plans = {1: exits(1), 2: SimulatedRun(1.0, 0.0, says), 3: exits(1), 4: exits(1)}
    job = lab.submit(job_named("job", untried(anywhere)), lambda order: plans[order.attempt])
    lab.pass_s(20)
    assert where(lab, job) == ["a", "b", "a", "c"]
    assert codes(lab, job)[-1] == "retry_unschedulable"


def test_a_gang_is_kept_off_all_nodes_that_any_of_it_was_on() -> None:
    lab = lab_of("a", "b", "c", "d", "e")
    spec = job_named("gang", untried(), resources=Resources(3000), gang=2)
    job = lab.submit(spec, lambda order: exits(int(order.rank == 1)))
    lab.pass_s(20)
    assert (lab.job(job).state, where(lab, job)) == (JobState.FAILED, ["a", "b", "c", "d"])
    assert codes(lab, job) == ["retry", "retry_unschedulable"]


def test_a_program_that_cannot_be_started_on_a_node_was_tried_there() -> None:
    lab = lab_of("a", "b")
    broken = ends_with(FailureCondition.LAUNCH_FAILED, EndedBy.ITSELF, started=False)
    job = lab.submit(job_named("job", untried()), lambda order: broken if order.node == "a" else exits(0))
    lab.pass_s(20)
    assert (lab.job(job).state, where(lab, job)) == (JobState.SUCCEEDED, ["a", "b"])


def test_it_waits_for_an_untried_node_that_is_in_use_cordoned_or_short_of_room() -> None:
    lab = lab_of("a", "b")
    lab.submit(job_named("first", resources=Resources(4000)), exits(0, after_s=30.0))
    lab.step(2)
    job = lab.submit(job_named("job", untried(), resources=Resources(4000)), fails_until(2))
    lab.pass_s(10)
    assert (lab.job(job).state, where(lab, job)) == (JobState.QUEUED, ["b"])
    assert lab.job(job).reason == "needs 4 cpu, the largest free node has 0; it was tried on b"
    nodes(lab).cordon(BY, "a", "a new kernel", drain=False)
    lab.pass_s(1000, every_s=50)
    assert lab.job(job).state is JobState.QUEUED
    assert "node a is cordoned: a new kernel" in lab.job(job).reason
    nodes(lab).uncordon(BY, "a")
    lab.pass_s(10)
    assert (lab.job(job).state, where(lab, job)) == (JobState.SUCCEEDED, ["b", "a"])


def test_it_waits_for_an_untried_node_whose_gpu_is_in_trouble_until_somebody_mends_it() -> None:
    lab, one = Lab(), Resources(1000, 0, 1)
    tried, ill = (NodeInfo(name, evolve(one, memory=1 << 30), {}, (Device(f"GPU-{name}", 0, "L4"),)) for name in "ab")
    lab.use(tried, evolve(ill, devices=(evolve(ill.devices[0], health="fan is broken"),)))
    job = lab.submit(job_named("job", untried(), resources=one), fails_until(2))
    lab.pass_s(900)
    told = "needs 1 gpu, GPU-b is not healthy: fan is broken; it was tried on a"
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.QUEUED, told)
    lab.use(tried, ill)
    lab.pass_s(5)
    assert (lab.job(job).state, where(lab, job)) == (JobState.SUCCEEDED, ["a", "b"])


def test_a_node_that_joins_while_it_waits_takes_it() -> None:
    lab = lab_of("a", "b")
    job = lab.submit(job_named("job", untried(delay_s=20.0)), fails_until(3))
    lab.pass_s(3)
    nodes(lab).cordon(BY, "b", "", drain=False)
    lab.pass_s(40)
    assert (lab.job(job).state, where(lab, job)) == (JobState.QUEUED, ["a"])
    lab.use(node("a"), node("b"), node("c"))
    lab.pass_s(5)
    assert where(lab, job) == ["a", "c"]


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_node_that_is_gone_may_come_back_for_ten_minutes(*, comes_back: bool) -> None:
    lab = lab_of("a", "b")
    job = lab.submit(job_named("job", untried(delay_s=5.0)), fails_until(2))
    lab.step(2)
    lab.use(node("a"))
    lab.pass_s(300, every_s=5.0)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.QUEUED, "no untried node will do; it was tried on a")
    lab.restart_controller()
    lab.pass_s(500, every_s=5.0)
    assert lab.job(job).state is JobState.QUEUED, "time counts from the controller's start"
    if comes_back:
        lab.use(node("a"), node("b"))
        lab.pass_s(20)
        assert (lab.job(job).state, where(lab, job)[-1]) == (JobState.SUCCEEDED, "b")
        return
    lab.pass_s(200, every_s=5.0)
    assert (lab.job(job).state, codes(lab, job)) == (JobState.FAILED, ["retry", "retry_unschedulable"])
    (*_, last) = lab.attempts(job)
    assert last.decision is not None
    assert last.decision.reason == f"{NO_UNTRIED} a"
    assert [run.node for run in lab.runs(job)] == ["a"]


def test_many_that_wait_in_vain_fail_together() -> None:
    lab = lab_of("a", "b")
    jobs = [lab.submit(job_named(f"job{i}", untried(delay_s=5.0)), exits(1)) for i in range(4)]
    lab.pass_s(2)
    assert {run.node for job in jobs for run in lab.runs(job)} == {"a"}
    lab.use(node("a"))
    lab.pass_s(700, every_s=5.0)
    assert [lab.job(job).state for job in jobs] == [JobState.FAILED] * 4
    assert len({lab.job(job).ended_at for job in jobs}) == 1


def test_the_same_is_kept_over_a_hold_a_drain_and_deaths_of_the_controller() -> None:
    lab = lab_of("a", "b", "c")
    plans = {1: exits(1), 2: STAYS, 3: STAYS, 4: exits(1), 5: exits(1)}
    job = lab.submit(job_named("job", untried()), lambda order: plans[order.attempt])
    lab.pass_s(4)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(3)
    lab.restart_controller()
    assert (lab.job(job).state, lab.job(job).avoid_nodes, lab.job(job).tried) == (JobState.HELD, ("a",), ("a", "b"))
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(3)
    assert where(lab, job) == ["a", "b", "b"], "a hold costs no node"
    nodes(lab).cordon(BY, "b", "", drain=True)
    lab.pass_s(3)
    lab.restart_controller()
    lab.pass_s(10)
    assert where(lab, job) == ["a", "b", "b", "c"]
    assert (lab.job(job).state, codes(lab, job)[-1]) == (JobState.FAILED, "retry_unschedulable")


def test_a_retry_by_hand_begins_anew_once_the_job_has_ended_and_only_hastens_one_that_waits() -> None:
    lab = lab_of("a", "b")
    job = lab.submit(job_named("job", untried(delay_s=50.0)), lambda order: exits(int(order.attempt < 4)))
    lab.pass_s(3)
    lab.ask(RequestKind.RETRY, job)
    lab.pass_s(5)
    assert (lab.job(job).state, where(lab, job)) == (JobState.FAILED, ["a", "b"])
    lab.ask(RequestKind.RETRY, job)
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).tried, where(lab, job)) == (JobState.BACKOFF, ("a",), ["a", "b", "a"])
    lab.pass_s(60)
    assert (lab.job(job).state, where(lab, job)[-1]) == (JobState.SUCCEEDED, "b")


def test_the_last_node_is_avoided_softly_beside_it() -> None:
    lab = lab_of("a", "b", "c")
    soft = Rule(Action.RETRY, "soft", termination_message="soft", anti_affinity=AntiAffinity.NODE)
    says = RunOutcome(containers=(ContainerResult(1, reason="Error", message="soft"),))
    plans = {1: exits(1), 2: SimulatedRun(1.0, 0.0, says), 3: SimulatedRun(1.0, 0.0, says), 4: exits(0)}
    job = lab.submit(job_named("job", untried(soft)), lambda order: plans[order.attempt])
    lab.pass_s(20)
    assert where(lab, job) == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("tried", "cpus", "away", "nothing"),
    [
        ((), (4,), (), False),
        (("n0",), (4,), (), True),
        (("n0",), (4, 4), (), False),
        (("n0",), (4, 2), (), True),
        (("n0",), (4, 2), (4,), False),
        (("n0",), (4,), (2,), True),
        (("n0", "n1"), (4, 4), (), True),
        (("gone",), (4,), (), False),
        (("gone",), (2,), (), True),
        (("n0",), (), (), False),
    ],
)
def test_there_is_nothing_untried_where_no_other_node_could_ever_take_it(
    tried: Sequence[str],
    cpus: Sequence[int],
    away: Sequence[int],
    nothing: bool,  # noqa: FBT001 - a table
) -> None:
    places = [Place(("e", f"n{i}"), Resources(cpu * 1000, 1 << 40)) for i, cpu in enumerate(cpus)]
    gone = [Place(("e", f"away{i}"), Resources(cpu * 1000, 1 << 40)) for i, cpu in enumerate(away)]
    shape = Shape(Resources(3000), avoid="n1", avoid_nodes=frozenset(tried))
    assert nothing_untried(shape, places, gone) is nothing


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (
            Shape(Resources(1000), avoid_nodes=frozenset({"n0", "n1"})),
            "no untried node will do; it was tried on n0, n1",
        ),
        (
            Shape(Resources(6000), avoid_nodes=frozenset({"n0"})),
            "needs 6 cpu, the largest node has 4: no node could ever take it; it was tried on n0",
        ),
        (Shape(Resources(1000), avoid_nodes=frozenset({"elsewhere"})), "needs 1 cpu, the largest free node has 0"),
        (
            Shape(Resources(1000), selector=(("zone", "a"),), avoid_nodes=frozenset({"n0"})),
            "no node has the label zone=a; it was tried on n0",
        ),
    ],
)
def test_a_job_that_waits_says_where_it_was_tried(shape: Shape, reason: str) -> None:
    places = [Place(("e", f"n{i}"), Resources(cpu * 1000)) for i, cpu in enumerate((8, 4))]
    assert why_not(shape, places, {place.key: Resources(0) for place in places}) == reason


def test_only_the_first_of_many_nodes_are_named() -> None:
    places = [Place(("e", f"n{i}"), Resources(1000)) for i in range(9)]
    shape = Shape(Resources(1), avoid_nodes=frozenset(f"n{i}" for i in range(9)))
    assert why_not(shape, places, {}).endswith("it was tried on n0, n1, n2, n3, n4 and 4 more")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.sampled_from(["die", "hold", "wait"]), max_size=8),
    st.integers(1, 6),
)
def test_it_is_never_placed_twice_on_one_node(count: int, gang: int, happens: list[str], succeeds_at: int) -> None:
    lab = lab_of(*(f"n{i}" for i in range(count)))
    spec = job_named("job", untried(delay_s=1.0), resources=Resources(3000), gang=gang)
    job = lab.submit(spec, lambda order: exits(1 if order.attempt < succeeds_at else 0))
    for each in happens:
        lab.pass_s(1)
        if each == "die":
            lab.restart_controller()
        elif each == "hold" and lab.job(job).state in {JobState.QUEUED, JobState.BACKOFF}:
            lab.ask(RequestKind.HOLD, job)
            lab.pass_s(2)
            lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(60)
    ran = [run for run in lab.runs(job) if run.may_have_run]
    assert len({run.node for run in ran}) == len(ran)
    fits = count // gang
    state = JobState.SUCCEEDED if succeeds_at <= fits else JobState.FAILED if fits else JobState.QUEUED
    assert (lab.job(job).state, len(ran)) == (state, gang * min(fits, succeeds_at))
    if state is JobState.FAILED:
        assert codes(lab, job)[-1] == "retry_unschedulable"


def set_of_one(lab: SetLab, plan: Callable[[RunOrder], SimulatedRun], **pod: object) -> str:
    lab.store.put_entry(evolve(untried(delay_s=5.0), name="untried"))
    job = {"name": "w", "command": ["true"], "retryPolicies": ["untried"], "backoffLimit": 0, **pod}
    document = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "s"}, "spec": {"jobs": [job]}}
    return lab.submit_set(document, plan)


def pods_of(lab: SetLab, set_id: str) -> list[Run]:
    return [run for job in lab.store.children_of(set_id) for run in lab.store.runs(job.id)]


def gave_up(lab: SetLab, set_id: str) -> str:
    (told,) = [
        each.what.message
        for each in lab.store.set_log(set_id)
        if isinstance(each.what, SetEvent) and each.what.reason == "RetryPolicyGaveUp"
    ]
    return told


def test_a_pod_runs_once_on_each_node_and_has_failed_then() -> None:
    lab = SetLab()
    lab.use(*map(node, ("a", "b", "c")))
    set_id = set_of_one(lab, lambda _: exits(1))
    for _ in range(10):
        lab.pass_s(5)
        lab.restart_controller()
    runs = pods_of(lab, set_id)
    assert [run.node for run in runs] == ["a", "b", "c"]
    assert f"rule untried: {NO_UNTRIED} a, b, c" in gave_up(lab, set_id)
    assert lab.store.workload(JobSet, set_id).state.terminal == "Failed"


def test_a_pod_that_waits_for_an_untried_node_has_failed_once_none_is_left() -> None:
    lab = SetLab()
    lab.use(*map(node, ("a", "b")))
    set_id = set_of_one(lab, lambda _: exits(1))
    lab.pass_s(3)
    lab.use(node("a"))
    lab.pass_s(500, every_s=5.0)
    assert lab.store.workload(JobSet, set_id).state.terminal == "", "node b may come back"
    lab.pass_s(150, every_s=5.0)
    (run,) = pods_of(lab, set_id)
    assert lab.store.workload(JobSet, set_id).state.terminal == "Failed"
    assert run.node == "a"
    assert f"rule untried: {NO_UNTRIED} a" in gave_up(lab, set_id)


def test_what_kubernetes_starts_again_goes_anywhere() -> None:
    lab = SetLab()
    lab.use(node("a"))
    set_id = set_of_one(lab, lambda _: exits(1), restartPolicy="OnFailure", backoffLimit=2)
    lab.pass_s(200, every_s=5.0)
    assert {run.node for run in pods_of(lab, set_id)} == {"a"}
    assert len(pods_of(lab, set_id)) == 3
