"""Job sets in the real controller, in virtual time: what is decided is what runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.jobset.loading import child_spec, dump_set, load_set, plain_job_spec
from holdfast.dialects.jobset.reading import JobManifest, read_kube
from holdfast.dialects.native.codec import dump_spec
from holdfast.domain.job import ChildOf, Job, JobState
from holdfast.domain.jobset.names import job_name
from holdfast.domain.jobset.state import Terminal
from holdfast.domain.jobset.stored import JobSet
from holdfast.domain.spec import Resources
from holdfast.engines.simulated.engine import SimulatedRun
from holdfast.ports.engine import NodeInfo, RunPhase
from holdfast.ports.store import Request, RequestKind, Submission
from tests.unit.conftest import Lab, exits, retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.engine import RunOrder

FOREVER = 10_000.0


def manifest(name: str = "train", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def group(name: str, replicas: int = 1, **job: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod = {"restartPolicy": job.pop("restartPolicy", "Never"), "containers": [container]}
    spec = {"backoffLimit": 0, **job, "template": {"spec": pod}}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


class SetLab(Lab):
    """A lab that can submit job sets; ``plan`` says what every pod does."""

    plan: Callable[[RunOrder], SimulatedRun]

    def submit_set(self, document: dict[str, Any], plan: Callable[[RunOrder], SimulatedRun]) -> str:
        text = dump_set(document)
        spec = load_set(text, lenient=False)
        self.plan = plan
        now = self.clock.now()
        row = JobSet(id=f"set-{spec.name}", name=spec.name, created_at=now, manifest=text)
        jobs = []
        for one in spec.replicated_jobs:
            child = child_spec(spec, one)
            for index in range(one.replicas):
                name = job_name(spec.name, one.name, index)
                jobs.append(
                    Job(
                        id=f"id-{name}",
                        name=name,
                        queue=child.queue,
                        priority=child.priority,
                        submitted_at=now,
                        spec=dump_spec(child),
                        request=child.resources,
                        queued_at=now,
                        updated_at=now,
                        state=JobState.WAITING,
                        child=ChildOf(row.id, one.name, index),
                    )
                )
        self.store.submit(Submission(jobs, job_set=row))
        return row.id

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return self.plan(order)

    def ask_set(self, kind: RequestKind, set_id: str, **payload: Any) -> None:
        text = json.dumps(payload) if payload else ""
        self.store.append(Request(kind, (set_id,), self.clock.now(), payload=text))

    def engine_runs(self) -> list[str]:
        """List runs that have not ended, as their engine sees them."""
        return [uid for uid, seen in self.engine.observe().items() if seen.phase is not RunPhase.FINISHED]

    def states(self) -> dict[str, str]:
        return {name: str(self.store.job(name).state) for name in sorted({order.job_name for order in self.orders})}


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def fails_first(name: str, times: int = 1) -> Callable[[RunOrder], SimulatedRun]:
    """Plan that one job fails in its first attempts, and everything else ends well."""
    left = [times]

    def plan(order: RunOrder) -> SimulatedRun:
        if order.job_name == name and left[0] > 0:
            left[0] -= 1
            return exits(3)
        return exits(0, after_s=5.0)

    return plan


def test_a_set_whose_jobs_all_succeed_is_complete(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 3)]), lambda _: exits(0))
    lab.pass_s(5)
    row = lab.store.job_set(set_id)
    assert row.state.terminal is Terminal.COMPLETED
    assert lab.states() == {f"train-w-{index}": "Succeeded" for index in range(3)}


def test_a_failed_job_fails_a_set_without_a_policy_and_the_others_are_stopped(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 3)]), fails_first("train-w-1"))
    lab.pass_s(5)
    row = lab.store.job_set(set_id)
    assert row.state.terminal is Terminal.FAILED
    assert lab.states() == {"train-w-0": "Cancelled", "train-w-1": "Failed", "train-w-2": "Cancelled"}


def test_a_counted_restart_runs_every_job_again_with_the_next_attempt_number(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy={"maxRestarts": 1})
    set_id = lab.submit_set(document, fails_first("train-w-1"))
    lab.pass_s(20)
    row = lab.store.job_set(set_id)
    assert row.state.terminal is Terminal.COMPLETED, row
    assert (row.state.restarts, row.state.restarts_counted) == (1, 1)
    assert sorted((order.job_name, order.attempt) for order in lab.orders) == [
        (f"train-w-{index}", attempt) for index in range(3) for attempt in (1, 2)
    ]
    assert lab.states() == {f"train-w-{index}": "Succeeded" for index in range(3)}


def rule(action: str, **matchers: Any) -> dict[str, Any]:
    return {"action": action, "name": f"rule{action}", **matchers}


def attempts_started(lab: SetLab) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for order in lab.orders:
        found.setdefault(order.job_name, []).append(order.attempt)
    return found


def test_restarting_one_job_leaves_the_others_alone(lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "rules": [rule("RestartJob")]}
    set_id = lab.submit_set(
        manifest(replicatedJobs=[group("w", 3)], failurePolicy=policy), fails_first("train-w-2", times=2)
    )
    lab.pass_s(30)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    assert attempts_started(lab) == {"train-w-0": [1], "train-w-1": [1], "train-w-2": [1, 2, 3]}


def test_a_spent_budget_fails_the_set(lab: SetLab) -> None:
    policy = {"maxRestarts": 1}
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy=policy)
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(30)
    state = lab.store.job_set(set_id).state
    failed = state.condition("Failed")
    assert state.terminal is Terminal.FAILED
    assert failed is not None
    assert failed.reason == "ReachedMaxRestarts"
    assert (state.restarts, state.counted) == (1, 1)


def test_every_decision_is_in_the_sets_log_once(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 3})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=3))
    lab.pass_s(60)
    log = lab.store.set_log(set_id)
    decisions = [entry.what for entry in log if hasattr(entry.what, "attempt")]
    assert [(one.job, one.attempt, one.granted) for one in decisions] == [
        ("train-w-0", (restart, 0), True) for restart in range(3)
    ]


def test_nothing_of_the_new_generation_starts_before_the_old_one_has_gone(lab: SetLab) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    document = manifest(replicatedJobs=[group("w", 4)], failurePolicy=policy)
    set_id = lab.submit_set(document, fails_first("train-w-3"))
    lab.pass_s(40, every_s=0.5)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    jobs = [job for job in lab.store.children_of(set_id)]
    runs = [run for job in jobs for run in lab.store.runs(job.id)]
    old = max(run.ended_at or 0.0 for run in runs if run.attempt == 1)
    new = min(run.started_at or 0.0 for run in runs if run.attempt == 2)
    assert old <= new


def test_pods_are_replaced_within_the_attempt_until_the_back_off_limit(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 1, backoffLimit=2)])
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(120)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    runs = lab.store.runs("id-train-w-0")
    assert [(run.attempt, run.rank) for run in runs] == [(1, 0)] * 3
    gaps = [later.started_at - earlier.ended_at for earlier, later in zip(runs, runs[1:], strict=False)]
    assert [round(gap) for gap in gaps] == [10, 20]


def test_one_pod_too_many_fails_the_job_with_the_words_of_kubernetes(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1, backoffLimit=1)]), lambda _: exits(1))
    lab.pass_s(120)
    state = lab.store.job_set(set_id).state
    assert state.terminal is Terminal.FAILED
    job = lab.store.job("train-w-0")
    assert job.reason == "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert len(lab.store.runs(job.id)) == 2


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
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    assert sorted(order.rank for order in lab.orders) == [0, 1, 2, 2, 3]
    told = {order.rank: order.env["JOB_COMPLETION_INDEX"] for order in lab.orders}
    assert told == {0: "0", 1: "1", 2: "2", 3: "3"}


def test_parallelism_bounds_how_many_pods_run_at_once(lab: SetLab) -> None:
    job = group("w", 1, parallelism=2, completions=6, completionMode="Indexed")
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), lambda _: exits(0, after_s=2.0))
    most = 0
    for _ in range(30):
        lab.pass_s(0.5, every_s=0.5)
        most = max(most, sum(run.status == "RUNNING" for run in lab.store.runs("id-train-w-0")))
    assert most == 2
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def test_a_suspended_set_runs_nothing_until_it_is_resumed(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], suspend=True)
    set_id = lab.submit_set(document, lambda _: exits(0))
    lab.pass_s(5)
    assert not lab.orders
    assert lab.store.job("train-w-0").state is JobState.WAITING
    lab.ask_set(RequestKind.SET_RESUME, set_id)
    lab.pass_s(5)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def test_suspending_stops_what_runs_and_resuming_runs_it_again(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=10.0))
    lab.pass_s(3)
    lab.ask_set(RequestKind.SET_SUSPEND, set_id)
    lab.pass_s(5)
    assert not lab.engine_runs()
    assert lab.store.job_set(set_id).state.holds("Suspended")
    lab.ask_set(RequestKind.SET_RESUME, set_id)
    lab.pass_s(20)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    assert len(lab.orders) == 4


def test_a_deleted_set_is_gone_once_its_programs_have_stopped(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    lab.ask_set(RequestKind.SET_DELETE, set_id)
    lab.pass_s(5)
    assert not lab.store.job_sets()
    assert not lab.engine_runs()
    assert lab.store.job("train-w-0").state is JobState.CANCELLED


def test_a_finished_set_is_deleted_when_its_time_to_live_is_over(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 1)], ttlSecondsAfterFinished=30)
    set_id = lab.submit_set(document, lambda _: exits(0))
    lab.pass_s(20)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    lab.pass_s(20)
    assert not lab.store.job_sets()
    assert lab.store.job("train-w-0").state is JobState.SUCCEEDED


def test_a_finished_set_can_be_deleted(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1)]), lambda _: exits(0))
    lab.pass_s(5)
    lab.ask_set(RequestKind.SET_DELETE, set_id)
    lab.pass_s(2)
    assert not lab.store.job_sets()


def test_what_depends_on_a_replicated_job_waits_for_it(lab: SetLab) -> None:
    second = {**group("b"), "dependsOn": [{"name": "a", "status": "Complete"}]}
    set_id = lab.submit_set(manifest(replicatedJobs=[group("a"), second]), lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    assert [order.job_name for order in lab.orders] == ["train-a-0"]
    lab.pass_s(20)
    assert [order.job_name for order in lab.orders] == ["train-a-0", "train-b-0"]
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def test_a_person_restarts_a_whole_set_uncounted(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 0})
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=10.0))
    lab.pass_s(3)
    lab.ask_set(RequestKind.SET_RESTART, set_id)
    lab.pass_s(30)
    state = lab.store.job_set(set_id).state
    assert state.terminal is Terminal.COMPLETED
    assert (state.restarts, state.counted) == (1, 0)
    assert attempts_started(lab) == {"train-w-0": [1, 2], "train-w-1": [1, 2]}


def test_a_person_restarts_one_job_even_when_it_has_succeeded(lab: SetLab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        return exits(0, after_s=1.0 if order.job_name == "train-w-0" else 20.0)

    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), plan)
    lab.pass_s(5)
    assert lab.store.job("train-w-0").state is JobState.WAITING
    lab.ask_set(RequestKind.SET_RESTART, set_id, group="w", index=0)
    lab.pass_s(40)
    assert attempts_started(lab) == {"train-w-0": [1, 2], "train-w-1": [1]}
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def test_a_program_that_fails_on_failure_starts_again_in_its_pod(lab: SetLab) -> None:
    job = group("w", 1, restartPolicy="OnFailure", backoffLimit=5)
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), fails_first("train-w-0", times=2))
    lab.pass_s(60)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    record = lab.store.pod_jobs(["id-train-w-0"])["id-train-w-0"]
    assert record.state.failed == 0
    assert len(lab.orders) == 3


def test_programs_restart_in_place_together_without_giving_their_places_back(lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    forever = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    job = group("w", 3, parallelism=1, completions=1, **forever)
    set_id = lab.submit_set(manifest(replicatedJobs=[job], failurePolicy=policy), fails_first("train-w-1"))
    lab.pass_s(60)
    state = lab.store.job_set(set_id).state
    assert state.terminal is Terminal.COMPLETED, state
    assert state.in_place_current == 1
    assert attempts_started(lab) == {f"train-w-{index}": [1, 1] for index in range(3)}


def test_a_controller_that_forgets_everything_goes_on_where_it_was(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy={"maxRestarts": 3})
    set_id = lab.submit_set(document, fails_first("train-w-1", times=3))
    for _ in range(120):
        lab.pass_s(0.5, every_s=0.5)
        lab.restart_controller()
    state = lab.store.job_set(set_id).state
    assert state.terminal is Terminal.COMPLETED
    assert (state.restarts, state.counted) == (3, 3)
    assert attempts_started(lab) == {f"train-w-{index}": [1, 2, 3, 4] for index in range(3)}


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
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def test_a_job_waits_while_no_topology_domain_is_free_and_says_so(lab: SetLab) -> None:
    lab.use(*nodes(2))
    document = manifest(replicatedJobs=[group("w", 2)])
    document["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    waiting = [job for job in lab.store.children_of(set_id) if job.state is JobState.QUEUED]
    assert [job.reason for job in waiting] == ["no rack is free to be had alone"]
    lab.pass_s(30)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


def native(*jobs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "holdfast.dev/v1",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"jobs": list(jobs), **spec},
    }


def test_a_retry_policy_runs_a_pod_again_before_its_set_hears_of_it(lab: SetLab) -> None:
    lab.store.put_policy(replace(retrying(2, delay_s=1.0), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(30)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED
    assert attempts_started(lab) == {"train-w-0": [1, 1, 1]}


def test_a_set_hears_of_a_failure_once_the_retry_policy_gives_up(lab: SetLab) -> None:
    lab.store.put_policy(replace(retrying(1), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(30)
    assert lab.store.job_set(set_id).state.terminal is Terminal.FAILED
    assert len(lab.orders) == 2


def test_more_parallelism_starts_more_pods_of_a_running_job(lab: SetLab) -> None:
    job = group("w", 1, parallelism=2, completions=2, completionMode="Indexed")
    document = manifest(replicatedJobs=[job])
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=20.0))
    lab.pass_s(3)
    document["spec"]["replicatedJobs"][0]["template"]["spec"].update(parallelism=3, completions=3)
    lab.store.append(Request(RequestKind.SET_UPDATE, (set_id,), lab.clock.now(), payload=dump_set(document)))
    lab.pass_s(5)
    assert sorted(order.rank for order in lab.orders) == [0, 1, 2]
    assert lab.store.job_set(set_id).generation == 2


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
    assert lab.store.job_set(set_id).state.terminal is Terminal.NONE
    lab.pass_s(40)
    assert lab.store.job_set(set_id).state.terminal is Terminal.COMPLETED


class Batch:
    """A ``batch/v1`` Job of its own."""

    def __init__(self, lab: SetLab, plan: Callable[[RunOrder], SimulatedRun], **spec: Any) -> None:
        document = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "pi"},
            "spec": group("x", **spec)["template"]["spec"],
        }
        lab.plan = plan
        found = read_kube(document).manifest
        assert isinstance(found, JobManifest)
        described = plain_job_spec(found)
        now = lab.clock.now()
        self.id = "id-pi"
        self.lab = lab
        lab.store.submit(
            Submission(
                [Job("id-pi", "pi", "default", 0, now, dump_spec(described), described.resources, queued_at=now)]
            )
        )

    @property
    def state(self) -> JobState:
        return self.lab.store.job(self.id).state


def test_a_job_of_its_own_replaces_failed_pods_and_succeeds(lab: SetLab) -> None:
    batch = Batch(lab, fails_first("pi", times=1), backoffLimit=2)
    lab.pass_s(40)
    assert batch.state is JobState.SUCCEEDED
    assert [run.attempt for run in lab.store.runs(batch.id)] == [1, 1]


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
    job = lab.store.job(batch.id)
    assert (job.state, job.reason) == (JobState.CANCELLED, "enough")
    assert not lab.engine_runs()


def test_a_held_job_of_its_own_runs_nothing_until_it_is_released(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0), suspend=True)
    lab.pass_s(3)
    assert batch.state is JobState.HELD
    assert not lab.orders
    lab.ask(RequestKind.RELEASE, batch.id)
    lab.pass_s(5)
    assert batch.state is JobState.SUCCEEDED


def test_a_work_queue_is_done_when_one_worker_succeeded_and_all_have_ended(lab: SetLab) -> None:
    batch = Batch(lab, lambda order: exits(0, after_s=1.0 + order.rank), parallelism=3, completions=None)
    lab.pass_s(10)
    assert batch.state is JobState.SUCCEEDED
    assert len(lab.orders) == 3
