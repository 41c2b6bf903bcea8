"""Job sets and Jobs of Kubernetes as people steer them, with real processes: what runs, stops and runs again."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import Conflict
from tests.e2e.jobset_stage import OVER, PATIENCE_S, STOPPED, group, job_spec, jobset, program
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.wire.jobs import JobView
    from tests.e2e.jobset_stage import Ledger, Stage


def test_a_suspended_set_has_no_programs_and_all_run_again_when_it_is_resumed(stage: Stage) -> None:
    ledger = stage.ledger()
    command = program(ledger, {"*": "nth 1 && stay; ok"})
    name = stage.apply(jobset("pausing", group("a", command, pods=2), group("b", command, replicas=2)))
    wait_until(lambda: len(ledger.started()) == 4, "four programs")
    stage.api.suspend_job_set(name)
    stage.until(name, lambda view: view.state == "Suspended", "the suspension")
    wait_until(lambda: ledger.ends(1) == Counter({STOPPED: 4}), "four programs that stopped")
    wait_until(lambda: not stage.processes("pausing-"), "no process of a suspended set")
    stage.api.resume_job_set(name)
    view = stage.ended(name)
    assert (view.terminal, view.restarts, view.restarts_counted) == ("Completed", 0, 0)
    assert set(map(len, ledger.started().values())) == {2}
    ledger.check()
    stage.delete(name)


def test_a_set_created_suspended_starts_nothing_until_it_is_resumed(stage: Stage) -> None:
    ledger = stage.ledger()
    name = stage.apply(jobset("asleep", group("a", program(ledger, {})), suspend=True))
    stage.until(name, lambda view: view.state == "Suspended", "the suspension")
    assert not ledger.lines()
    stage.api.resume_job_set(name)
    assert stage.ended(name).terminal == "Completed"
    assert ledger.started() == {"a/0/0": [1]}
    stage.delete(name)


def test_of_two_quick_changes_the_later_one_wins_and_a_deletion_beats_what_comes_after_it(stage: Stage) -> None:
    ledger = stage.ledger()
    original = jobset("hasty", group("a", program(ledger, {"*": "stay"})))
    suspended = {**original, "spec": {**original["spec"], "suspend": True}}
    stage.api.put_job_set("hasty", original)
    for generation in (3, 5, 7):
        assert stage.api.put_job_set("hasty", suspended).result == "updated"
        assert stage.api.put_job_set("hasty", original).result == "updated"
        view = stage.until("hasty", lambda view: view.active == 1, "the program")
        assert (view.suspend, view.generation) == (False, generation)
    stage.api.delete_job_set("hasty")
    try:  # at once, unless the set has gone before this is heard
        said = stage.api.put_job_set("hasty", original).result
    except Conflict as refused:
        said = str(refused)
        wait_until(lambda: all(one.name != "hasty" for one in stage.api.job_sets()), "the end of the set")
        assert stage.api.put_job_set("hasty", original).result == "created"
    assert said == "created" or "is being deleted" in said
    stage.delete("hasty")


def test_deleting_a_set_leaves_no_process_and_its_name_is_free(stage: Stage) -> None:
    ledger = stage.ledger()
    manifest = jobset("gone", group("a", program(ledger, {"*": "stay"}), replicas=2, pods=2))
    stage.apply(manifest)
    wait_until(lambda: len(ledger.started()) == 4, "four programs")
    stage.delete("gone")
    assert not stage.processes("gone-")
    assert ledger.ends(1) == Counter({STOPPED: 4})
    ledger.check()
    assert stage.api.job("gone-a-1").state == "Cancelled"  # as history
    stage.apply(manifest)
    wait_until(lambda: len(ledger.lines()) == 12, "four programs of the next set of that name")
    stage.delete("gone")


@pytest.mark.parametrize(
    ("part", "again"),
    [
        ({}, {"a/0/0", "a/1/0", "b/0/0"}),
        ({"replicated_job": "a"}, {"a/0/0", "a/1/0"}),
        ({"replicated_job": "a", "index": 1}, {"a/1/0"}),
    ],
    ids=["set", "replicatedJob", "job"],
)
def test_a_person_restarts_a_part_of_a_set_and_it_counts_nothing(
    stage: Stage, part: Mapping[str, Any], again: set[str]
) -> None:
    ledger = stage.ledger()
    command = program(ledger, {"*": "await end; ok"})
    groups = [group("a", command, replicas=2), group("b", command)]
    name = stage.apply(jobset("by-hand", *groups, failurePolicy={"maxRestarts": 0}))
    wait_until(lambda: len(ledger.started()) == 3, "three programs")
    stage.api.restart_job_set(name, **part)
    wait_until(lambda: {who for who, numbers in ledger.started().items() if len(numbers) == 2} == again, "a restart")
    ledger.say("end")
    view = stage.ended(name)
    assert (view.terminal, view.restarts_counted) == ("Completed", 0)
    assert ledger.started() == {who: [1, 2] if who in again else [1] for who in ("a/0/0", "a/1/0", "b/0/0")}
    ledger.check()
    stage.delete(name)


def test_every_pod_is_told_who_it_is(stage: Stage) -> None:
    ledger = stage.ledger()
    wanted = "JOB|JOBSET|REPLICATED|GLOBAL"
    say = f'env | grep -E "^({wanted})" >"$ledger.$JOB_GLOBAL_INDEX.$JOB_COMPLETION_INDEX"'
    command = program(ledger, {"work/1/1@1": "meet 5; leave 1", "*@1": "stay", "*": f"{say}; ok"})
    groups = [group("lead", command), group("work", command, replicas=2, pods=2)]
    coordinator = {"replicatedJob": "lead", "jobIndex": 0, "podIndex": 0}
    manifest = jobset("told", *groups, failurePolicy={"maxRestarts": 1}, coordinator=coordinator)
    assert stage.ended(stage.apply(manifest)).terminal == "Completed"
    told = ledger.path.with_name(f"{ledger.path.name}.2.1").read_text().splitlines()
    known = dict(line.split("=", 1) for line in told)
    assert known.pop("JOBSET_UID")
    assert known.pop("JOB_UID") == stage.api.job("told-work-1").id
    assert len(known.pop("JOB_KEY")) == 40
    assert known == {
        "JOB_NAME": "told-work-1",
        "JOB_GROUP_INDEX": "2",
        "JOB_COMPLETION_INDEX": "1",
        "JOBSET_NAME": "told",
        "REPLICATED_JOB_NAME": "work",
        "JOB_INDEX": "1",
        "JOB_GLOBAL_INDEX": "2",
        "JOBSET_RESTART_ATTEMPT": "1",
        "JOB_RESTART_ATTEMPT": "0",
        "GLOBAL_REPLICAS": "3",
        "REPLICATED_JOB_REPLICAS": "2",
        "JOBSET_COORDINATOR": "told-lead-0-0.told",
    }
    stage.delete("told")


def native(ledger: Ledger, plan: Mapping[str, str]) -> dict[str, Any]:
    """Write a job set in the short form, whose pods a named policy may run again."""
    worker = {"name": "worker", "replicas": 2, "command": program(ledger, plan), "retryPolicies": ["flaky"]}
    spec = {"jobs": [{**worker, "resources": {"cpu": 0.1}}], "failurePolicy": {"maxRestarts": 1}}
    return {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "short"}, "spec": spec}


@pytest.mark.parametrize(
    ("plan", "ended", "started"),
    [
        ({"worker/1/*": "nth 3 || leave 75; ok"}, ("Completed", 0), {"worker/0/0": [1], "worker/1/0": [1, 1, 1]}),
        (
            {"worker/1/0@1": "leave 75", "worker/0/*@1": "stay"},
            ("Completed", 1),
            {"worker/0/0": [1, 2], "worker/1/0": [1, 1, 1, 2]},
        ),
        ({"worker/1/*": "leave 2", "*": "stay"}, ("Failed", 1), {"worker/0/0": [1, 2], "worker/1/0": [1, 2]}),
    ],
    ids=["the policy is enough", "then the set restarts", "not of the policy's kind"],
)
def test_a_retry_policy_runs_a_pod_again_before_its_set_hears_of_it(
    stage: Stage, plan: Mapping[str, str], ended: tuple[str, int], started: Mapping[str, list[int]]
) -> None:
    rule = {"action": "Retry", "name": "busy", "onExitCodes": {"operator": "In", "values": [75]}}
    policy = {"retryLimit": 2, "backoff": {"initialDelay": "20ms"}, "rules": [rule]}
    kind = {"apiVersion": "holdfast.dev/v1", "kind": "RetryPolicy", "metadata": {"name": "flaky"}, "spec": policy}
    stage.api.policies.put("flaky", kind)
    ledger = stage.ledger()
    meeting = {who: f"meet 2; {what}" if "leave" in what else what for who, what in plan.items()}
    view = stage.ended(stage.apply(native(ledger, meeting)))
    assert (view.terminal, view.restarts_counted) == ended
    assert ledger.started() == started
    ledger.check()
    stage.delete("short")


RULES = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [75]}},
    ]
}


@dataclass(frozen=True, slots=True)
class Kube:
    """A Job of Kubernetes with three indexes, and what must come of it."""

    name: str
    plan: Mapping[str, str]
    spec: Mapping[str, Any]
    state: str
    reason: str
    started: tuple[int, int, int]
    """How many programs each index had."""
    completed: str
    restart: str = "Never"


JOBS = (
    Kube(
        "an exit code fails the Job at once",
        {"*/1@1": "meet 3; leave 42", "*": "stay"},
        {"podFailurePolicy": RULES},
        "Failed",
        "PodFailurePolicy",
        (1, 1, 1),
        "",
    ),
    Kube(
        "an ignored exit code counts against nothing",
        {"*/1@1": "nth 3 || leave 75; ok"},
        {"podFailurePolicy": RULES, "backoffLimit": 0},
        "Succeeded",
        "",
        (1, 3, 1),
        "0-2",
    ),
    Kube(
        "the back-off limit is spent",
        {"*/0@1": "meet 3; leave 1", "*": "stay"},
        {"backoffLimit": 2},
        "Failed",
        "BackoffLimitExceeded",
        (3, 1, 1),
        "",
    ),
    Kube(
        "exactly the back-off limit",
        {"*/0@1": "nth 3 || leave 1; ok"},
        {"backoffLimit": 2},
        "Succeeded",
        "",
        (3, 1, 1),
        "0-2",
    ),
    Kube(
        "an index that fails too often leaves the others alone",
        {"*/0@1": "leave 1", "*/2@1": "nth 2 || leave 1; ok"},
        {"backoffLimitPerIndex": 1},
        "Failed",
        "FailedIndexes",
        (2, 1, 2),
        "1,2",
    ),
    Kube(
        "one success is enough",
        {"*/0@1": "meet 3; ok", "*": "stay"},
        {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
        "Succeeded",
        "",
        (1, 1, 1),
        "0",
    ),
    Kube(
        "programs start again in their pods",
        {"*/0@1": "nth 3 || leave 1; ok"},
        {"backoffLimit": 4},
        "Succeeded",
        "",
        (3, 1, 1),
        "0-2",
        restart="OnFailure",
    ),
    Kube("too long", {"*": "stay"}, {"activeDeadlineSeconds": 2}, "Failed", "DeadlineExceeded", (1, 1, 1), ""),
)


def over(stage: Stage, job: str) -> JobView:
    wait_until(lambda: stage.api.job(job).state in OVER, "the end of a Job", within_s=PATIENCE_S)
    return stage.api.job(job)


def kube_job(command: list[str], *, restart: str = "Never", **spec: object) -> dict[str, Any]:
    spec = {**job_spec(command, pods=3, restart=restart), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": spec}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_of_kubernetes_follows_its_own_rules(stage: Stage, job: Kube) -> None:
    ledger = stage.ledger()
    manifest = kube_job(program(ledger, job.plan), restart=job.restart, **job.spec)
    view = over(stage, stage.api.submit(manifest).id)
    assert (view.state, view.reason.partition(":")[0]) == (job.state, job.reason)
    assert view.pods is not None
    assert view.pods.completed_indexes == job.completed
    started = ledger.started()
    assert tuple(len(started[f"//{index}"]) for index in range(3)) == job.started
    ledger.check()


def test_a_job_of_kubernetes_is_applied_held_released_and_cancelled(stage: Stage) -> None:
    ledger = stage.ledger()
    path = stage.folder / "job.json"
    path.write_text(json.dumps(kube_job(program(ledger, {"*": "stay"}), suspend=True)))
    applied = stage.run("apply", "-f", str(path))
    assert applied.returncode == 0, applied.stderr
    wait_until(lambda: stage.api.job("plain").state == "Held", "a Job that is suspended")
    assert not ledger.lines()
    stage.api.release("plain")
    wait_until(lambda: len(ledger.started()) == 3, "three pods")
    stage.api.cancel("plain")
    assert over(stage, "plain").state == "Cancelled"
    assert not stage.processes("plain")
    assert ledger.ends(1) == Counter({STOPPED: 3})
    ledger.check()
