"""Job sets: each action, limits beyond the document, what is said of a decision, starting, ending, suspending."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.policy.model import Backoff, LimitUse, SetAction, SetRule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import (
    Child,
    ChildPhase,
    CreateChild,
    DeleteChild,
    Forget,
    ResizeChild,
    ResumeChild,
    SuspendChild,
)
from holdfast.domain.workloads.jobset.children import job_labels, pod_environment
from holdfast.domain.workloads.jobset.model import (
    CoordinatorPod,
    DependencyStatus,
    DependsOn,
    FailurePolicy,
    JobSetSpec,
    Operator,
    ReplicatedJob,
    RestartStrategy,
    StartupOrder,
    SuccessPolicy,
    job_key,
)
from holdfast.domain.workloads.jobset.reconcile import InPlace, ReconcileInput, SetResult, converge
from holdfast.domain.workloads.jobset.state import JobSetState, Terminal
from holdfast.domain.workloads.kubejob.model import KubeJobSpec

GROUPS = (ReplicatedJob(name="driver"), ReplicatedJob(name="workers", replicas=3))


class Set:
    """A set whose jobs are told what to do; deletions are over when ``gone`` says so."""

    def __init__(self, policy: FailurePolicy | None = None, **fields: Any) -> None:  # noqa: ANN401 - any field of a set
        self.spec = JobSetSpec(**{"name": "js", "replicated_jobs": GROUPS, "failure": policy, **fields})
        self.state = JobSetState()
        self.children: dict[str, Child] = {}
        self.now = 0.0
        self.look()

    def look(self, **more: Any) -> SetResult:  # noqa: ANN401 - any field of a look
        passed = converge(self.spec, self.state, list(self.children.values()), ReconcileInput(self.now, **more))
        self.state = passed.state
        for order in passed.orders:
            if isinstance(order, CreateChild):
                self.children[order.name] = Child(
                    name=order.name, group=order.group, index=order.index, global_index=order.global_index,
                    restart=order.restart, job_restart=order.job_restart, suspended=order.suspended,
                )  # fmt: skip
            elif isinstance(order, DeleteChild):
                self.change(order.name, deleting_since=self.now)
            elif isinstance(order, (SuspendChild, ResumeChild)):
                self.change(order.name, suspended=isinstance(order, SuspendChild))
        return passed

    def change(self, *jobs: str, **fields: Any) -> None:  # noqa: ANN401 - any field of a job
        for name in jobs or tuple(self.children):
            self.children[name] = evolve(self.children[name], **fields)

    def fail(self, *jobs: str, reason: str = "BackoffLimitExceeded", message: str = "") -> SetResult:
        self.change(*jobs, phase=ChildPhase.FAILED, reason=reason, message=message, failed_at=self.now)
        return self.look()

    def succeed(self, *jobs: str) -> SetResult:
        self.change(*jobs, phase=ChildPhase.SUCCEEDED)
        return self.look()

    def gone(self) -> SetResult:
        self.children = {name: one for name, one in self.children.items() if one.deleting_since is None}
        return self.look()


def policy(*actions: SetAction, limit: int = 5, **more: Any) -> FailurePolicy:  # noqa: ANN401 - any field of a policy
    rules = tuple(SetRule(action, f"r{place}") for place, action in enumerate(actions))
    return FailurePolicy(**{"max_restarts": limit, "rules": rules, **more})


def created(passed: SetResult) -> list[str]:
    return [order.name for order in passed.orders if isinstance(order, CreateChild)]


def deleted(passed: SetResult) -> list[str]:
    return [order.name for order in passed.orders if isinstance(order, DeleteChild)]


WORKERS = ["js-workers-0", "js-workers-1", "js-workers-2"]
ALL = ["js-driver-0", *WORKERS]


@pytest.mark.parametrize(
    ("action", "restarted", "counted"),
    [
        (SetAction.RESTART_JOB_SET, ALL, 1),
        (SetAction.RESTART_JOB_SET_UNCOUNTED, ALL, 0),
        (SetAction.RESTART_GROUP, WORKERS, 1),
        (SetAction.RESTART_GROUP_UNCOUNTED, WORKERS, 0),
        (SetAction.RESTART_JOB, ["js-workers-1"], 1),
        (SetAction.RESTART_JOB_UNCOUNTED, ["js-workers-1"], 0),
        (SetAction.FAIL_JOB, [], 0),
    ],
)
def test_each_action_restarts_what_it_says_and_counts_what_it_must(
    action: SetAction, restarted: list[str], counted: int
) -> None:
    a_set = Set(policy(action))
    passed = a_set.fail("js-workers-1")
    assert deleted(passed) == restarted
    assert created(passed) == []
    assert created(a_set.gone()) == restarted
    assert a_set.state.counted == counted
    assert passed.events[0].reason == f"{action}FailurePolicyAction"
    assert passed.decisions[0].message.endswith("(first failed job: js-workers-1)")


def test_without_a_policy_the_first_failed_job_fails_the_set() -> None:
    a_set = Set()
    a_set.change("js-workers-2", phase=ChildPhase.FAILED, failed_at=1.0)
    a_set.change("js-workers-0", phase=ChildPhase.FAILED, failed_at=2.0)
    passed = a_set.look()
    failed = a_set.state.condition("Failed")
    assert failed is not None
    assert failed.reason == "FailedJobs"
    assert failed.message == "jobset failed due to one or more job failures (first failed job: js-workers-2)"
    assert deleted(passed) == ["js-driver-0", "js-workers-1"]


def test_three_failures_at_once_are_one_restart_of_the_set_and_three_of_single_jobs() -> None:
    whole, single = Set(policy(SetAction.RESTART_JOB_SET)), Set(policy(SetAction.RESTART_JOB))
    assert len(whole.fail(*WORKERS).decisions) == 1
    assert len(single.fail(*WORKERS).decisions) == 3
    assert (whole.state.counted, single.state.counted) == (1, 3)


def test_a_restarted_replicated_job_answers_all_of_its_failures() -> None:
    a_set = Set(policy(SetAction.RESTART_GROUP))
    assert len(a_set.fail(*WORKERS).decisions) == 1
    assert (a_set.state.counted, a_set.state.restarts) == (1, 0)


def test_ties_are_broken_by_the_global_index() -> None:
    assert Set(policy(SetAction.RESTART_JOB_SET)).fail("js-workers-1", "js-driver-0").decisions[0].job == "js-driver-0"


def test_a_job_left_failed_is_judged_once_and_hides_no_later_failure() -> None:
    rules = (
        SetRule(SetAction.RESTART_JOB, "again", reasons=frozenset({"ExitCode3"})),
        SetRule(SetAction.FAIL_JOB, "rest"),
    )
    a_set = Set(FailurePolicy(max_restarts=5, rules=rules))
    assert a_set.fail("js-workers-0").decisions[0].rule == "rest"
    assert a_set.fail("js-workers-0").decisions == ()
    assert a_set.fail("js-workers-1", reason="ExitCode3").decisions[0].rule == "again"
    a_set.gone()
    a_set.succeed("js-workers-1", "js-workers-2", "js-driver-0")
    failed = a_set.state.condition("Failed")
    assert failed is not None
    assert (failed.reason, "jobs left failed: js-workers-0" in failed.message) == ("FailedJobs", True)


def test_a_job_left_failed_does_not_stop_a_set_that_needs_only_others() -> None:
    a_set = Set(policy(SetAction.FAIL_JOB), success=SuccessPolicy(Operator.ALL, ("driver",)))
    a_set.fail("js-workers-0")
    a_set.succeed("js-driver-0")
    assert a_set.state.terminal is Terminal.COMPLETED


def test_a_restart_of_the_set_runs_jobs_left_failed_again() -> None:
    rules = (
        SetRule(SetAction.FAIL_JOB, "leave", replicated_jobs=frozenset({"workers"})),
        SetRule(SetAction.RESTART_JOB_SET, "again"),
    )
    a_set = Set(FailurePolicy(max_restarts=5, rules=rules))
    a_set.fail("js-workers-0")
    a_set.fail("js-driver-0")
    assert a_set.state.left_failed == {}
    assert created(a_set.gone()) == ALL


def test_a_restart_of_a_replicated_job_runs_those_of_it_that_were_left_failed_again_and_no_others() -> None:
    bug = frozenset({"Bug"})
    rules = (SetRule(SetAction.FAIL_JOB, "leave", reasons=bug), SetRule(SetAction.RESTART_GROUP, "again"))
    groups = (*GROUPS, ReplicatedJob(name="workers-2"), ReplicatedJob(name="late"))
    a_set = Set(FailurePolicy(max_restarts=5, rules=rules), replicated_jobs=groups)
    a_set.fail("js-workers-0", "js-workers-2-0", "js-driver-0", reason="Bug")
    a_set.fail("js-workers-1")
    assert set(a_set.state.left_failed) == {"js-driver-0", "js-workers-2-0"}
    assert created(a_set.gone()) == WORKERS
    a_set.succeed("js-late-0", *WORKERS)
    condition = a_set.state.condition("Failed")
    assert condition is not None
    assert condition.message.endswith("(jobs left failed: js-driver-0, js-workers-2-0)")


def test_a_spent_budget_fails_the_set_and_says_which_limit() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB, limit=1))
    decisions = a_set.fail("js-workers-0", "js-workers-1").decisions
    assert [(one.granted, one.reason) for one in decisions] == [
        (True, "RestartJobFailurePolicyAction"),
        (False, "ReachedMaxRestarts"),
    ]
    assert decisions[0].limits == (LimitUse("maxRestarts", 0, 1),)


def test_rules_and_replicated_jobs_may_have_limits_of_their_own() -> None:
    limited = SetRule(SetAction.RESTART_JOB_UNCOUNTED, "r", limit=1)
    by_rule = Set(FailurePolicy(rules=(limited,)))
    by_rule.fail("js-workers-0")
    by_rule.gone()
    assert by_rule.fail("js-workers-0").decisions[0].reason == "ReachedRuleLimit"
    groups = (ReplicatedJob(name="driver"), ReplicatedJob(name="workers", replicas=3, max_restarts=1))
    by_group = Set(policy(SetAction.RESTART_JOB), replicated_jobs=groups)
    by_group.fail("js-workers-0")
    assert by_group.fail("js-driver-0").decisions[0].granted
    assert by_group.fail("js-workers-2").decisions[0].reason == "ReachedReplicatedJobLimit"


def test_only_restarts_within_the_window_use_up_the_budget() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB, limit=1, window_s=100.0))
    a_set.fail("js-workers-0")
    a_set.gone()
    a_set.now = 150.0
    assert a_set.fail("js-workers-0").decisions[0].granted
    a_set.gone()
    a_set.now = 200.0
    assert not a_set.fail("js-workers-0").decisions[0].granted


def test_a_healthy_period_gives_the_budget_back() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB, limit=1, reset_after_s=60.0))
    a_set.fail("js-workers-0")
    a_set.gone()
    a_set.change(active_pods=1, ready_pods=1)
    assert a_set.look().wake_at == 60.0
    a_set.now = 60.0
    a_set.look()
    assert a_set.fail("js-workers-1").decisions[0].granted
    assert a_set.state.counted == 2


@pytest.mark.parametrize(
    ("action", "waiting"),
    [(SetAction.RESTART_JOB_SET, ALL), (SetAction.RESTART_GROUP, WORKERS), (SetAction.RESTART_JOB, ["js-workers-1"])],
)
def test_what_is_restarted_waits_for_its_back_off(action: SetAction, waiting: list[str]) -> None:
    a_set = Set(policy(action, backoff=Backoff(initial_s=8.0)))
    assert a_set.fail("js-workers-1").decisions[0].delay_s == 8.0
    gone = a_set.gone()
    assert (created(gone), gone.wake_at) == ([], 8.0)
    a_set.now = 8.0
    assert created(a_set.look()) == waiting


def test_the_kill_switch_stops_every_restart() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_SET_UNCOUNTED))
    a_set.change("js-workers-0", phase=ChildPhase.FAILED)
    assert a_set.look(restarts_allowed=False).decisions[0].reason == "RestartsDisabled"
    assert a_set.state.terminal is Terminal.FAILED


def test_a_decision_says_which_rules_were_looked_at_and_why() -> None:
    rules = (
        SetRule(SetAction.FAIL_JOB_SET, "other", replicated_jobs=frozenset({"driver"})),
        SetRule(
            SetAction.FAIL_JOB_SET, "text", messages=("exit code 4[0-9]",), reasons=frozenset({"PodFailurePolicy"})
        ),
    )
    a_set = Set(FailurePolicy(rules=rules))
    decision = a_set.fail("js-workers-0", reason="PodFailurePolicy", message="failed with exit code 42").decisions[0]
    assert [(one.rule, one.matched, one.because) for one in decision.considered] == [
        ("other", False, "replicatedJob workers is not one of driver"),
        (
            "text",
            True,
            (
                "failure reason PodFailurePolicy is one of PodFailurePolicy; "
                "failure message 'failed with exit code 42' matches 'exit code 4[0-9]'"
            ),
        ),
    ]


def test_a_set_may_react_as_soon_as_a_failure_is_certain() -> None:
    patient, eager = Set(policy(SetAction.RESTART_JOB)), Set(policy(SetAction.RESTART_JOB, on_certain=True))
    for a_set in (patient, eager):
        a_set.change("js-workers-0", certain=True)
    assert (len(patient.look().decisions), len(eager.look().decisions)) == (0, 1)


def test_what_will_not_go_is_ended_by_force() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB), kill_timeout_s=30.0)
    a_set.fail("js-workers-0")
    assert a_set.look().wake_at == 30.0
    a_set.now = 30.0
    assert a_set.look().orders == (DeleteChild("js-workers-0", force=True),)


def test_blocking_recreate_starts_nothing_while_anything_old_is_there() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_SET, strategy=RestartStrategy.BLOCKING_RECREATE))
    a_set.fail("js-workers-0")
    del a_set.children["js-driver-0"]
    assert created(a_set.look()) == []
    assert created(a_set.gone()) == ALL


@pytest.mark.parametrize("spec", [{"replicated_jobs": ()}, {"replicated_jobs": (ReplicatedJob(name="a", replicas=0),)}])
def test_a_set_without_jobs_completes_at_once(spec: dict[str, Any]) -> None:
    assert Set(**spec).state.terminal is Terminal.COMPLETED


def test_the_total_deadline_holds_over_restarts() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_SET_UNCOUNTED), total_deadline_s=100.0)
    a_set.fail("js-workers-0")
    assert a_set.gone().wake_at == 100.0
    a_set.now = 100.0
    a_set.look()
    failed = a_set.state.condition("Failed")
    assert failed is not None
    assert failed.reason == "DeadlineExceeded"


def test_in_order_each_replicated_job_waits_for_the_one_before() -> None:
    a_set = Set(startup=StartupOrder.IN_ORDER)
    assert list(a_set.children) == ["js-driver-0"]
    a_set.change("js-driver-0", active_pods=1)
    assert created(a_set.look()) == []
    a_set.change("js-driver-0", ready_pods=1)
    assert created(a_set.look()) == WORKERS
    assert a_set.state.holds("StartupPolicyInProgress")
    a_set.change(ready_pods=1)
    a_set.look()
    assert (a_set.state.holds("StartupPolicyInProgress"), a_set.state.holds("StartupPolicyCompleted")) == (False, True)


def test_a_dependency_that_was_left_failed_ends_the_set() -> None:
    needs = (DependsOn("driver", DependencyStatus.COMPLETE),)
    groups = (ReplicatedJob(name="driver"), ReplicatedJob(name="workers", depends_on=needs))
    a_set = Set(policy(SetAction.FAIL_JOB), replicated_jobs=groups)
    a_set.fail("js-driver-0")
    assert a_set.state.terminal is Terminal.FAILED


def test_suspending_and_resuming_keeps_the_jobs() -> None:
    a_set = Set()
    a_set.spec = evolve(a_set.spec, suspend=True)
    assert a_set.look().orders == tuple(SuspendChild(name) for name in ALL)
    assert a_set.state.holds("Suspended")
    a_set.spec = evolve(a_set.spec, suspend=False)
    assert [order.name for order in a_set.look().orders if isinstance(order, ResumeChild)] == ALL
    suspended = a_set.state.condition("Suspended")
    assert suspended is not None
    assert (suspended.status, suspended.reason) == (False, "ResumeJobs")


def test_a_finished_set_is_forgotten_when_its_time_to_live_is_over() -> None:
    a_set = Set(ttl_s=50.0)
    a_set.now = 10.0
    assert a_set.succeed(*ALL).wake_at == 60.0
    a_set.now = 60.0
    assert a_set.look().orders == (Forget(),)


def test_a_changed_size_reaches_jobs_that_run() -> None:
    a_set = Set()
    a_set.change(size=(1, 1))
    groups = (GROUPS[0], evolve(GROUPS[1], job=KubeJobSpec(parallelism=4, completions=4)))
    a_set.spec = evolve(a_set.spec, replicated_jobs=groups)
    assert a_set.look().orders == tuple(ResizeChild(name, 4, 4) for name in WORKERS)


@pytest.mark.parametrize(
    ("attempts", "current", "previous", "terminal"),
    [
        ((0, 0, 0, 0), 0, None, ""),
        ((1, 0, 0, 0), None, 0, ""),
        ((2, 2, 2, 2), 2, None, ""),
        ((0, None, 0, 0), None, None, ""),
        ((3, 0, 0, 0), None, None, "Failed"),
    ],
)
def test_programs_that_restart_in_place_meet_at_a_barrier(
    attempts: tuple[int | None, ...], current: int | None, previous: int | None, terminal: str
) -> None:
    a_set = Set(FailurePolicy(max_restarts=2, strategy=RestartStrategy.IN_PLACE))
    a_set.look(in_place=InPlace(attempts))
    assert (a_set.state.in_place_current, a_set.state.in_place_previous) == (current, previous)
    assert a_set.state.terminal == terminal


def test_a_set_managed_by_someone_else_is_left_alone() -> None:
    assert Set(managed_by="example.com/other").state == JobSetState()


def test_jobs_and_pods_are_told_who_they_are() -> None:
    groups = (ReplicatedJob(name="a", replicas=2), ReplicatedJob(name="b", replicas=3, group_name="g"))
    spec = JobSetSpec(name="js", replicated_jobs=groups, coordinator=CoordinatorPod("a"))
    job = CreateChild("js-b-1", "b", 1, 3, 2, 5)
    labels = job_labels(spec, job, uid="u")
    expected = {
        "jobset-name": "js", "jobset-uid": "u", "replicatedjob-name": "b", "replicatedjob-replicas": "3",
        "job-index": "1", "job-key": job_key("js-b-1"), "job-global-index": "3", "global-replicas": "5",
        "restart-attempt": "2", "job-restart-attempt": "5", "group-name": "g", "group-replicas": "3",
        "job-group-index": "1", "coordinator": "js-a-0-0.js",
    }  # fmt: skip
    assert labels == {f"jobset.sigs.k8s.io/{key}": value for key, value in expected.items()}
    environment = pod_environment(spec, job, 7, uid="u1")
    assert environment["JOB_COMPLETION_INDEX"] == "7"
    assert environment["JOBSET_COORDINATOR"] == "js-a-0-0.js"
