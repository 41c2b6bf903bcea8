"""Jobs made of pods in the real controller, in virtual time: how pods are replaced, started again and placed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.dialects.manifests import read_manifest
from holdfast.domain.failure import Cause, FailureCondition
from holdfast.domain.job import Job, JobState, Resources
from holdfast.domain.policy.model import Action, MemoryGrowth, Mutation, RetryPolicy, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import RestartPace
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision, Terminal
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Submission
from tests.unit.conftest import NOW, exits, retrying
from tests.unit.jobset_lab import FOREVER, SetLab, attempts_started, fails_first, group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.ports.engine import RunOrder


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def test_pods_are_replaced_within_the_attempt_until_the_back_off_limit(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 1, backoffLimit=2)])
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(120)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    runs = lab.store.runs("id-train-w-0")
    assert [(run.attempt, run.rank) for run in runs] == [(1, 0)] * 3
    gaps = [(later.started_at or 0.0) - (earlier.ended_at or 0.0) for earlier, later in pairwise(runs)]
    assert [round(gap) for gap in gaps] == [10, 20]


def test_one_pod_too_many_fails_the_job_with_the_words_of_kubernetes(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1, backoffLimit=1)]), lambda _: exits(1))
    lab.pass_s(120)
    state = lab.store.workload(JobSet, set_id).state
    assert state.terminal is Terminal.FAILED
    job = lab.store.job("train-w-0")
    assert job.reason == "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert len(lab.store.runs(job.id)) == 2


def test_a_job_that_was_active_too_long_failed_of_its_deadline_and_not_of_an_earlier_pod(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 1, backoffLimit=3, activeDeadlineSeconds=30)])
    lab.submit_set(document, lambda _: exits(0, after_s=FOREVER) if lab.orders[1:] else exits(1))
    lab.pass_s(60)
    (attempt,) = lab.store.attempts("id-train-w-0")
    assert attempt.failure is not None
    assert len(lab.store.runs("id-train-w-0")) == 2
    assert attempt.failure.cause is Cause.EXECUTION_TIMEOUT
    assert sorted(attempt.failure.conditions) == [FailureCondition.DEADLINE_EXCEEDED]
    assert attempt.failure.message == "DeadlineExceeded: Job was active longer than specified deadline"


def test_a_job_is_active_no_longer_than_it_may_though_no_controller_runs(lab: SetLab) -> None:
    two = group("w", 1, backoffLimit=0, parallelism=2, completions=2, activeDeadlineSeconds=30)
    document = manifest(replicatedJobs=[two])
    lab.submit_set(document, lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(10)
    lab.clock.time += 3600.0
    ended = [seen.outcome.ended_at - NOW for seen in lab.engine.observe().values() if seen.outcome]
    assert ended == pytest.approx([31.0, 31.0], abs=1.0)
    lab.restart_controller()
    lab.step(4)
    (attempt,) = lab.store.attempts("id-train-w-0")
    assert attempt.failure is not None
    assert attempt.failure.message == "DeadlineExceeded: Job was active longer than specified deadline"
    assert len(lab.store.runs("id-train-w-0")) == 2


def test_an_indexed_job_runs_each_index_and_only_the_failed_one_again(lab: SetLab) -> None:
    failed: list[int] = []

    def plan(order: RunOrder) -> SimulatedRun:
        if order.rank == 2 and not failed:
            failed.append(order.rank)
            return exits(1)
        return exits(0, after_s=3.0)

    job = group("w", 1, parallelism=4, completions=4, completionMode="Indexed", backoffLimit=3)
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), plan)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert sorted(order.rank for order in lab.orders) == [0, 1, 2, 2, 3]
    told = {order.rank: order.main.env["JOB_COMPLETION_INDEX"] for order in lab.orders}
    assert told == {0: "0", 1: "1", 2: "2", 3: "3"}


def test_parallelism_bounds_how_many_pods_run_at_once(lab: SetLab) -> None:
    job = group("w", 1, parallelism=2, completions=6, completionMode="Indexed")
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), lambda _: exits(0, after_s=2.0))
    most = 0
    for _ in range(30):
        lab.pass_s(0.5, every_s=0.5)
        most = max(most, sum(run.status == "RUNNING" for run in lab.store.runs("id-train-w-0")))
    assert most == 2
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_each_pod_is_told_its_own_labels_where_its_template_asks_for_them(lab: SetLab) -> None:
    job = group("w", 2, parallelism=2, completions=2, completionMode="Indexed")
    fields = {
        "RANK": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
        "PART": "metadata.labels['jobset.sigs.k8s.io/job-index']",
        "SET": "metadata.labels['jobset.sigs.k8s.io/jobset-uid']",
        "GROUP": "metadata.labels['jobset.sigs.k8s.io/group-name']",
        "MEMBERS": "metadata.labels['jobset.sigs.k8s.io/group-replicas']",
        "MEMBER": "metadata.labels['jobset.sigs.k8s.io/job-group-index']",
        "JOB": "metadata.labels['batch.kubernetes.io/job-name']",
        "JOB_BEFORE": "metadata.labels['job-name']",
        "UID": "metadata.labels['batch.kubernetes.io/controller-uid']",
        "UID_BEFORE": "metadata.labels['controller-uid']",
        "NAME": "metadata.name",
    }
    asked = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = asked
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), lambda _: exits(0))
    lab.pass_s(10)
    told = sorted((order.job_name, order.rank, order.main.env["PART"], order.main.env["RANK"]) for order in lab.orders)
    assert told == [(f"train-w-{part}", rank, str(part), str(rank)) for part in range(2) for rank in range(2)]
    for order in lab.orders:
        known = [order.main.env[name] for name in list(fields)[2:-1]]
        owner = [order.job_name, order.job_name, order.job_id, order.job_id]
        assert known == [set_id, "default", "2", order.main.env["PART"], *owner]
    names = {order.main.env["NAME"] for order in lab.orders}
    assert len(names) == 4
    assert all(name.startswith("train-w-") for name in names)


def test_a_controller_that_dies_at_the_barrier_restarts_no_program_twice_and_keeps_the_places(lab: SetLab) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "InPlaceRestart"}
    forever = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "parallelism": 1, "completions": 1}
    job = group("w", 3, **forever)
    failing = fails_first("train-w-1")
    lingering = evolve(exits(0, after_s=5.0), term_delay_s=3.0)
    set_id = lab.submit_set(
        manifest(replicatedJobs=[job], failurePolicy=policy),
        lambda order: failing(order) if order.job_name == "train-w-1" else lingering,
    )
    for _ in range(40):
        lab.pass_s(0.5)
        lab.restart_controller()
    state = lab.store.workload(JobSet, set_id).state
    assert state.terminal is Terminal.COMPLETED, state
    assert state.in_place_current == 1
    blamed = [each.what.message for each in lab.store.set_log(set_id) if each.what.reason == "RestartInPlace"]
    assert blamed == ["pod train-w-1-0-1: exit code 3; the set restarts in place"]
    assert attempts_started(lab) == {f"train-w-{index}": [1, 1] for index in range(3)}


def test_programs_restart_in_place_together_without_giving_their_places_back(lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    forever = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    job = group("w", 3, parallelism=1, completions=1, **forever)
    set_id = lab.submit_set(manifest(replicatedJobs=[job], failurePolicy=policy), fails_first("train-w-1"))
    lab.pass_s(60)
    state = lab.store.workload(JobSet, set_id).state
    assert state.terminal is Terminal.COMPLETED, state
    assert state.in_place_current == 1
    assert attempts_started(lab) == {f"train-w-{index}": [1, 1] for index in range(3)}


def nodes(count: int, **labels: str) -> list[NodeInfo]:
    """Make nodes of two racks."""
    return [
        NodeInfo(f"n{number}", Resources(4000, 8 << 30, 0), {"rack": f"r{number // 2}", **labels})
        for number in range(count)
    ]


def test_each_job_has_a_topology_domain_to_itself(lab: SetLab) -> None:
    lab.use(*nodes(6))
    job = group("w", 3, parallelism=2, completions=2, completionMode="Indexed")
    document = manifest(replicatedJobs=[job])
    document["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    racks: dict[str, set[str]] = {}
    for order in lab.orders:
        racks.setdefault(order.job_name, set()).add(f"r{int(order.node[1:]) // 2}")
    assert all(len(found) == 1 for found in racks.values())
    assert {next(iter(found)) for found in racks.values()} == {"r0", "r1", "r2"}
    lab.pass_s(20)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_job_waits_while_no_topology_domain_is_free_and_says_so(lab: SetLab) -> None:
    lab.use(*nodes(2))
    document = manifest(replicatedJobs=[group("w", 2)])
    document["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    waiting = [job for job in lab.store.children_of(set_id) if job.state is JobState.QUEUED]
    assert [job.reason for job in waiting] == ["no rack is free for exclusive use"]
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_job_gets_a_topology_domain_that_has_what_its_pods_ask_for(lab: SetLab) -> None:
    plain, gpu = nodes(4)[1:3]
    gpu = evolve(gpu, capacity=Resources(2000, 8 << 30, 1))
    lab.use(evolve(plain, labels={}))
    job = group("w", 2)
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    document = manifest(replicatedJobs=[job])
    document["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    without = {job.reason for job in lab.store.children_of(set_id)}
    assert without == {"no node has the label rack, which exclusive topology needs"}
    lab.use(plain)
    lab.pass_s(3)
    reasons = [job.reason for job in lab.store.children_of(set_id)]
    assert reasons == ["needs 1 gpu, the largest node has 0: no node could ever take it"] * 2
    lab.use(plain, gpu)
    lab.pass_s(3)
    assert [order.node for order in lab.orders] == [gpu.name]
    assert [job.reason for job in lab.store.children_of(set_id)] == ["", "no rack is free for exclusive use"]


def native(*jobs: dict[str, Any], **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "holdfast.dev/v1",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"jobs": list(jobs), **spec},
    }


def test_a_retry_policy_runs_a_pod_again_before_its_set_hears_of_it(lab: SetLab) -> None:
    lab.store.put_entry(evolve(retrying(2, delay_s=1.0), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert attempts_started(lab) == {"train-w-0": [1, 1, 1]}
    told = [each.what for each in lab.store.set_log(set_id) if each.what.reason == "RetriedByPolicy"]
    assert [one.message.split("; ")[0] for one in told] == ["pod train-w-0-0-1: exit code 3"] * 2
    assert told[0].message.endswith("; retried in 1s")


def test_a_set_hears_of_a_failure_once_the_retry_policy_gives_up(lab: SetLab) -> None:
    lab.store.put_entry(evolve(retrying(1), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.FAILED
    assert len(lab.orders) == 2
    reasons = [each.what.reason for each in lab.store.set_log(set_id)]
    assert reasons.count("RetriedByPolicy") == reasons.count("RetryPolicyGaveUp") == 1


def test_a_policy_lets_the_memory_of_a_pod_grow_as_it_does_for_a_job(lab: SetLab) -> None:
    growing = Rule(Action.RETRY, mutate=Mutation(memory=MemoryGrowth(factor=2.0)))
    lab.store.put_entry(RetryPolicy("asked", (growing,), retry_limit=9, default_action=Action.FAIL))
    document = native(
        {"name": "w", "command": ["true"], "retryPolicies": ["asked"], "resources": {"memory": "1Gi"}},
    )
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(600)
    asked = [order.resources.memory >> 30 for order in lab.orders]
    assert asked == [1, 2, 4, 8, 16, 32, 64], "until no node could hold it"
    gave_up = [each.what.message for each in lab.store.set_log(set_id) if each.what.reason == "RetryPolicyGaveUp"]
    assert len(gave_up) == 1


def test_a_policy_holds_a_pod_until_its_job_is_released(lab: SetLab) -> None:
    lab.store.put_entry(RetryPolicy("asked", (Rule(Action.HOLD),), default_action=Action.FAIL))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["asked"]})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=1))
    lab.pass_s(30)
    (held,) = lab.store.children_of(set_id)
    assert (held.state, len(lab.orders)) == (JobState.HELD, 1)
    lab.restart_controller()
    lab.pass_s(5)
    assert lab.store.job(held.id).state is JobState.HELD
    lab.ask(RequestKind.RELEASE, held.id)
    lab.pass_s(10)
    assert len(lab.orders) == 2
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_job_that_is_held_keeps_no_topology_domain_from_others(lab: SetLab) -> None:
    lab.use(*nodes(2))
    lab.store.put_entry(RetryPolicy("asked", (Rule(Action.HOLD),), default_action=Action.FAIL))
    document = native(
        {"name": "w", "command": ["true"], "replicas": 2, "retryPolicies": ["asked"], "exclusiveTopology": "rack"}
    )
    set_id = lab.submit_set(document, fails_first("train-w-0", times=1))
    lab.pass_s(30)
    held, other = lab.store.children_of(set_id)
    assert (held.state, lab.store.workloads_by_id(KubeJobRecord, [other.id])[other.id].state.succeeded) == (
        JobState.HELD,
        1,
    )
    lab.ask(RequestKind.RELEASE, held.id)
    lab.pass_s(10)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_restarts_that_nothing_counts_are_spread_out_once_there_were_a_few(lab: SetLab) -> None:
    rules = [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]
    document = native({"name": "w", "command": ["missing"]}, failurePolicy={"rules": rules})
    set_id = lab.submit_set(document, lambda _: exits(127, after_s=0.0))
    lab.pass_s(200, every_s=0.25)
    delays = [each.what.delay_s for each in lab.store.set_log(set_id) if isinstance(each.what, SetDecision)]
    assert delays == [*[0.0] * RestartPace().at_once, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0][: len(delays)]
    assert len(lab.orders) == len(delays) > RestartPace().at_once + 4


def test_what_will_not_die_is_killed_after_the_kill_timeout(lab: SetLab) -> None:
    stubborn = SimulatedRun(duration_s=FOREVER, term_delay_s=FOREVER)
    document = native(
        {"name": "w", "command": ["true"], "replicas": 2, "grace": "1h"},
        failurePolicy={"maxRestarts": 1},
        killTimeout="30s",
    )
    first: list[str] = []

    def plan(order: RunOrder) -> SimulatedRun:
        first.append(order.job_name)
        if order.attempt > 1:
            return exits(0)
        return exits(1) if order.job_name == "train-w-0" else stubborn

    set_id = lab.submit_set(document, plan)
    lab.pass_s(20)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.NONE
    lab.pass_s(40)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


class Batch:
    """A ``batch/v1`` Job of its own."""

    def __init__(
        self,
        lab: SetLab,
        plan: Callable[[RunOrder], SimulatedRun],
        *,
        pod: dict[str, Any] | None = None,
        **spec: object,
    ) -> None:
        document: dict[str, Any] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "pi"},
            "spec": group("x", 1, **spec)["template"]["spec"],
        }
        document["spec"]["template"]["spec"].update(pod or {})
        lab.plan = plan
        described = read_manifest(document)
        assert isinstance(described, JobSpec)
        now = lab.clock.now()
        self.id = "id-pi"
        self.lab = lab
        job = Job("id-pi", "pi", "default", 0, now, dump_spec(described), described.resources, queued_at=now)
        lab.store.submit(Submission([evolve(job, kind=described.kind)]))

    def state(self) -> JobState:
        return self.lab.store.job(self.id).state


def test_a_pods_own_deadline_and_memory_limit_are_its_engines(lab: SetLab) -> None:
    resources = {"requests": {"memory": "50Mi"}, "limits": {"memory": "500Mi"}}
    containers = [{"name": "main", "command": ["x"], "resources": resources}]
    Batch(lab, lambda _: exits(0, after_s=5.0), pod={"activeDeadlineSeconds": 30, "containers": containers})
    lab.pass_s(2)
    (order,) = lab.orders
    assert (order.deadline_s, order.resources.memory, order.main.memory_limit) == (30.0, 50 << 20, 500 << 20)


def test_a_pods_own_deadline_fails_the_pod_and_not_the_job(lab: SetLab) -> None:
    plans = iter([exits(0, after_s=FOREVER), exits(0, after_s=5.0)])
    batch = Batch(
        lab, lambda _: next(plans), pod={"activeDeadlineSeconds": 30}, backoffLimit=1, activeDeadlineSeconds=500
    )
    lab.pass_s(60)
    assert batch.state() is JobState.SUCCEEDED
    assert [order.deadline_s for order in lab.orders] == [30.0, 30.0]


def test_a_job_of_its_own_replaces_failed_pods_and_succeeds(lab: SetLab) -> None:
    batch = Batch(lab, fails_first("pi", times=1), backoffLimit=2)
    lab.pass_s(40)
    assert batch.state() is JobState.SUCCEEDED
    assert [run.attempt for run in lab.store.runs(batch.id)] == [1, 1]


@pytest.mark.parametrize(("code", "ended"), [(0, JobState.SUCCEEDED), (1, JobState.FAILED)])
def test_a_job_of_its_own_that_ended_remembers_until_when_it_is_kept(lab: SetLab, code: int, ended: JobState) -> None:
    batch = Batch(lab, lambda _: exits(code), backoffLimit=0, ttlSecondsAfterFinished=30)
    assert lab.store.expired_jobs(until=1e12, limit=9) == []
    lab.pass_s(10)
    job = lab.store.job(batch.id)
    assert job.state is ended
    assert job.ended_at is not None
    assert lab.store.workloads_by_id(KubeJobRecord, [batch.id])[batch.id].expires_at == job.ended_at + 30.0


def test_a_cancelled_job_of_its_own_is_kept_as_long_as_one_that_ended(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0, after_s=FOREVER), ttlSecondsAfterFinished=0)
    lab.pass_s(5)
    lab.ask(RequestKind.CANCEL, batch.id)
    lab.pass_s(5)
    assert batch.state() is JobState.CANCELLED
    assert lab.store.workloads_by_id(KubeJobRecord, [batch.id])[batch.id].expires_at == lab.store.job(batch.id).ended_at


def test_a_job_of_its_own_without_a_time_to_live_is_kept(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0))
    lab.pass_s(10)
    assert batch.state() is JobState.SUCCEEDED
    assert lab.store.workloads_by_id(KubeJobRecord, [batch.id])[batch.id].expires_at is None


def test_a_job_of_its_own_that_waits_for_its_pods_says_until_when(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(1), backoffLimit=2)
    lab.pass_s(3)
    job = lab.store.job(batch.id)
    assert job.state is JobState.BACKOFF
    assert job.retry_at == pytest.approx((lab.store.runs(batch.id)[0].ended_at or 0) + 10.0)


def test_a_cancelled_job_of_its_own_stops_its_pods(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0, after_s=FOREVER), parallelism=3, completions=3)
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, batch.id, "enough")
    lab.pass_s(5)
    job = lab.job(batch.id)
    assert (job.state, job.reason, lab.attempts(batch.id)[0].message) == (JobState.CANCELLED, "enough", "cancelled")
    assert not lab.engine_runs()


def test_a_held_job_of_its_own_runs_nothing_until_it_is_released(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0), suspend=True)
    lab.pass_s(3)
    assert batch.state() is JobState.HELD
    assert not lab.orders
    lab.ask(RequestKind.RELEASE, batch.id)
    lab.pass_s(5)
    assert batch.state() is JobState.SUCCEEDED


def test_a_running_job_of_its_own_that_is_held_stops_its_pods_and_makes_them_anew(lab: SetLab) -> None:
    batch = Batch(lab, lambda order: exits(0, after_s=FOREVER if order.rank < 2 else 1.0), parallelism=3, completions=3)
    lab.pass_s(5)
    assert batch.state() is JobState.RUNNING
    lab.ask(RequestKind.HOLD, batch.id)
    lab.pass_s(5)
    held = lab.store.job(batch.id)
    assert (held.state, held.reason) == (JobState.HELD, "suspended")
    assert not lab.engine_runs()
    lab.plan = lambda _: exits(0)
    lab.ask(RequestKind.RELEASE, batch.id)
    lab.pass_s(10)
    assert batch.state() is JobState.SUCCEEDED
    assert len(lab.orders) == 5, "what had succeeded is not run again"
    assert lab.store.workloads_by_id(KubeJobRecord, [batch.id])[batch.id].state.failed == 0, (
        "a stop on request is no failure"
    )
    assert {run.attempt for run in lab.store.runs(batch.id)} == {1}


def test_a_job_of_its_own_released_while_its_pods_stop_goes_on(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: SimulatedRun(duration_s=FOREVER, term_delay_s=4.0))
    lab.pass_s(3)
    lab.ask(RequestKind.HOLD, batch.id)
    lab.pass_s(1)
    lab.ask(RequestKind.RELEASE, batch.id)
    lab.plan = lambda _: exits(0)
    lab.pass_s(20)
    assert batch.state() is JobState.SUCCEEDED


def test_a_work_queue_is_done_when_one_worker_succeeded_and_all_have_ended(lab: SetLab) -> None:
    batch = Batch(lab, lambda order: exits(0, after_s=1.0 + order.rank), parallelism=3, completions=None)
    lab.pass_s(10)
    assert batch.state() is JobState.SUCCEEDED
    assert len(lab.orders) == 3
