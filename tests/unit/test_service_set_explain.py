"""Why job sets, jobs of theirs and Kubernetes Jobs are where they are: what the service tells."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.http.endpoints.jobs import attempts_of
from holdfast.cli.render.jobs import attempt_table
from holdfast.cli.render.jobsets import jobset_facts
from holdfast.compiled.codec import set_spec_of
from holdfast.domain.audit import Act
from holdfast.domain.job import Ceiling, JobState, Queue
from holdfast.errors import NotFound, Refused
from holdfast.ports.store import JobFilter
from holdfast.service.explain import Explainer
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.operations.jobs import JobOperations
from holdfast.service.operations.jobsets import JobSetOperations
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobsets import JOB_SETS
from holdfast.service.submit import Submitter, WrittenJob
from holdfast.wire.render_jobsets import set_view
from tests.reading import read_job
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab, fails_first, group, manifest, rule
from tests.unit.jobset_service import ADMIN, JOB, NATIVE, Counting, backend_of, native, served_lab, why

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.engines.simulated.life import SimulatedRun


@pytest.fixture
def lab() -> SetLab:
    return served_lab()


@pytest.fixture
def sets(lab: SetLab) -> SetWriter:
    return SetWriter(lab.store, lab.clock, Counting())


@pytest.fixture
def control(lab: SetLab) -> Control[JobSet]:
    return Control(JOB_SETS, lab.store, lab.clock, actor="bob")


def failing_twice(sets: SetWriter, lab: SetLab) -> None:
    policy = {"maxRestarts": 1, "rules": [rule("RestartJob", targetReplicatedJobs=["workers"])]}
    lab.plan = fails_first("train-workers-1", times=2)
    sets.create(manifest(replicatedJobs=[group("driver"), group("workers", 2)], failurePolicy=policy))
    lab.pass_s(30)


def test_the_traces_of_a_set_tell_every_decision(sets: SetWriter, lab: SetLab) -> None:
    failing_twice(sets, lab)
    told = why(lab, "train")
    assert told.headline.startswith("Job set train failed: ")
    assert "1 of 1 counted restarts (maxRestarts) are used." in told.summary
    assert [one.decision.granted for one in told.traces] == [True, False]
    assert any("Rule ruleRestartJob matched" in line for line in told.traces[0].summary)
    assert told.omitted == 0
    assert len(why(lab, "train", job="train-workers-1").traces) == 2
    assert why(lab, "train", job="train-driver-0").traces == []
    with pytest.raises(NotFound):
        why(lab, "train", job="nobody")


def test_old_decisions_are_counted_and_not_told(sets: SetWriter, lab: SetLab, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_twice(sets, lab)
    monkeypatch.setattr("holdfast.service.jobsets.explain.MOST_TRACES", 1)
    told = why(lab, "train")
    assert (len(told.traces), told.omitted) == (1, 1)
    assert not told.traces[0].decision.granted


def test_the_log_is_read_from_either_end(sets: SetWriter, lab: SetLab) -> None:
    failing_twice(sets, lab)
    log = partial(JobSetOperations(backend_of(lab.store)).log, ADMIN, "train")
    whole = [one.seq for one in log()]
    assert [one.seq for one in log(tail=2)] == whole[-2:]
    assert [one.seq for one in log(after=whole[0], limit=1)] == [whole[1]]


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (native(suspend=True), "Job set short is suspended."),
        (NATIVE, "Job set short is running."),
        (
            manifest("short", managedBy="kueue.x-k8s.io/multikueue", replicatedJobs=[group("w")]),
            "Job set short is managed by kueue.x-k8s.io/multikueue, so Holdfast does not run it.",
        ),
    ],
)
def test_the_headline_says_where_a_set_is(sets: SetWriter, lab: SetLab, document: dict[str, Any], line: str) -> None:
    sets.create(document)
    lab.pass_s(2)
    assert why(lab, "short").headline == line


LEFT = "Left failed: train-workers-1."
TO_COME = "Once the others have ended, the set fails unless its success policy is met by then."


@pytest.mark.parametrize(
    ("driver", "success", "told", "headline"),
    [
        (exits(0, after_s=FOREVER), "All", [LEFT, TO_COME], "Job set train is running."),
        (exits(0, after_s=5.0), "All", [], "Job set train failed: "),
        (exits(0, after_s=5.0), "Any", [LEFT, "Its success policy was met without it."], "Job set train is complete: "),
        (exits(1, after_s=5.0), "All", [LEFT], "Job set train failed: "),
    ],
    ids=["going on", "failed of it", "complete without it", "failed of another"],
)
def test_what_a_job_left_failed_means_is_told_as_it_is_by_now(
    lab: SetLab, sets: SetWriter, driver: SimulatedRun, success: str, told: list[str], headline: str
) -> None:
    lab.plan = lambda order: exits(1) if "workers-1" in order.job_name else driver
    policy = {"maxRestarts": 0, "rules": [rule("FailJob", targetReplicatedJobs=["workers"])]}
    targets = {} if success == "All" else {"targetReplicatedJobs": ["driver"]}
    groups = [group("driver"), group("workers", 2)]
    document = manifest(replicatedJobs=groups, failurePolicy=policy, successPolicy={"operator": success, **targets})
    sets.create(document)
    lab.pass_s(30)
    found = why(lab, "train")
    assert found.headline.startswith(headline)
    assert [line for line in found.summary if line.startswith(("Left", "Once", "Its success"))] == told
    named = sum("train-workers-1" in line for line in (found.headline, *found.summary))
    assert named == 1, "who is to blame is named once"


def test_a_set_that_nobody_has_looked_at_has_not_started(sets: SetWriter, lab: SetLab) -> None:
    sets.create(NATIVE)
    assert why(lab, "short").headline == "Job set short has not started yet."


def test_what_waits_for_others_is_told(sets: SetWriter, lab: SetLab) -> None:
    waiting = {**group("workers"), "dependsOn": [{"name": "driver", "status": "Complete"}]}
    sets.create(manifest(replicatedJobs=[group("driver"), waiting]))
    lab.pass_s(2)
    summary = why(lab, "train").summary
    assert "Replicated job workers waits for driver to be Complete." in summary
    assert "Jobs of driver: 1 of 1 ready." in summary


def test_a_job_of_a_set_that_no_node_can_take_is_told(sets: SetWriter, lab: SetLab) -> None:
    big = {"name": "big", "replicas": 7, "command": ["x"], "resources": {"cpu": 99}}
    sets.create(native(queue="default", jobs=[big]))
    lab.pass_s(2)
    told = [line for line in why(lab, "short").summary if "queued" in line or "wait" in line]
    assert len(told) == 6
    assert told[0].startswith("Job short-big-0 is queued: needs 99 cpu, the largest node has 16")
    assert told[-1] == "More of its jobs wait."


def test_what_was_used_of_a_windows_budget_is_told_as_of_the_sets_end(sets: SetWriter, lab: SetLab) -> None:
    lab.plan = lambda _: exits(1, after_s=5.0)
    sets.create(native(jobs=[{"name": "w", "command": ["x"]}], failurePolicy={"maxRestarts": 1, "window": "60s"}))
    lab.pass_s(20)
    assert why(lab, "short").headline.startswith("Job set short failed: ")
    lab.pass_s(600)
    assert "1 of 1 counted restarts (maxRestarts) are used." in why(lab, "short").summary


def test_programs_that_started_again_in_place_are_told(sets: SetWriter, lab: SetLab) -> None:
    lab.plan = lambda _: exits(1, after_s=5.0)
    limits = {"backoffLimit": 2147483647, "podReplacementPolicy": "Failed"}
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    sets.create(native(jobs=[{"name": "w", "replicas": 2, "command": ["x"], **limits}], failurePolicy=policy))
    lab.pass_s(60)
    told = why(lab, "short")
    assert told.headline == "Job set short failed: jobset failed due to reaching max number of restarts."
    assert "Its programs were restarted in place 2 times (maxRestarts 2)." in told.summary
    assert not [line for line in told.summary if "are used" in line]
    shown = set_view(told.of, set_spec_of(told.of), queue="small", manifest={}, children=[])
    assert shown.in_place_restarts == 2
    assert ("Restarts in place", "2") in jobset_facts(shown)


def test_a_job_of_a_set_is_explained_by_its_pods_and_its_set(sets: SetWriter, lab: SetLab) -> None:
    failing_twice(sets, lab)
    told = Explainer(lab.store).why("train-workers-1")
    assert told.summary[0] == "Attempt 2 failed on node n0 after 1s: exit code 3."
    assert told.summary[2].endswith("exit code 3. It is not retried: the retry limit is 0 (backoffLimit).")
    assert told.summary[-1] == "It is job 1 of replicated job workers. For the whole set: holdfast why jobset train"
    assert Explainer(lab.store).why("train-driver-0").headline.startswith("Job train-driver-0 ")


def test_a_job_that_waits_for_its_set_says_so(sets: SetWriter, lab: SetLab) -> None:
    sets.create(NATIVE)
    told = Explainer(lab.store).why("short-driver-0")
    assert told.headline == "Job short-driver-0 is waiting for its job set"
    assert told.summary[-1].startswith("It is job 0 of replicated job driver.")


def test_a_kubernetes_job_is_submitted_like_any_other(lab: SetLab) -> None:
    submitter = Submitter(lab.store, lab.clock, Counting())
    lab.plan = lambda _: exits(0)
    job = submitter.submit(read_job(JOB))
    lab.pass_s(10)
    found = JobOperations(backend_of(lab.store)).get(ADMIN, job.id)
    assert found.job.state is JobState.SUCCEEDED
    assert found.pods is not None
    assert found.pods.record is not None
    assert found.pods.record.state.succeeded == 1
    told = Explainer(lab.store).why(job.id)
    assert "Pods: 1 succeeded." in told.summary


def test_a_kubernetes_job_that_somebody_else_manages_says_so(lab: SetLab) -> None:
    document = {**JOB, "spec": {**JOB["spec"], "managedBy": "other.example/queue"}}
    job = Submitter(lab.store, lab.clock, Counting()).submit(read_job(document))
    lab.pass_s(10)
    assert lab.store.runs(job.id) == []
    assert (
        "It is managed by other.example/queue, so Holdfast does not run it." in Explainer(lab.store).why("pi").summary
    )


def test_a_kubernetes_job_is_refused_where_it_is_written(lab: SetLab) -> None:
    lab.store.put_entry(Queue("tiny", max_running=Ceiling(memory=1 << 20)))
    document = {**JOB, "metadata": {"name": "pi", "labels": {"holdfast.dev/queue": "tiny"}}}
    with pytest.raises(Refused) as caught:
        Submitter(lab.store, lab.clock, Counting()).submit(WrittenJob(read_job(document)))
    (problem,) = caught.value.problems
    assert problem.path == "spec.template.spec.containers[0].resources.requests.memory"


def test_a_job_keeps_its_pods_when_its_set_is_gone(sets: SetWriter, control: Control[JobSet], lab: SetLab) -> None:
    row = sets.create(NATIVE).job_set
    lab.pass_s(2)
    jobs = JobOperations(backend_of(lab.store))
    (first, *_) = lab.store.jobs(JobFilter(job_set=row.id))
    before = jobs.get(ADMIN, first.id).pods
    assert before is not None
    assert before.spec is not None
    control.ask(Act.DELETE, "short")
    lab.pass_s(60)
    after = jobs.get(ADMIN, first.id).pods
    assert after is not None
    assert after.spec is None


def test_a_job_without_pods_has_none(lab: SetLab) -> None:
    job = Submitter(lab.store, lab.clock, Counting()).submit(read_job({"command": ["x"]}))
    assert JobOperations(backend_of(lab.store)).get(ADMIN, job.id).pods is None


def restarted(lab: SetLab, sets: SetWriter, action: str, *, most: int = 1) -> None:
    """Run a set whose first worker fails for ever, so that it is restarted ``most`` times."""
    lab.plan = lambda order: exits(3, after_s=1.0) if order.job_name == "train-workers-0" else exits(0, after_s=FOREVER)
    policy = {"maxRestarts": most, "rules": [rule(action)]}
    sets.create(manifest(replicatedJobs=[group("driver"), group("workers", 2)], failurePolicy=policy))
    lab.pass_s(60)


def attempts_told(lab: SetLab, job: str) -> list[tuple[str, str, str]]:
    """List what ``holdfast attempts`` says: number, state and decision."""
    jobs = JobOperations(backend_of(lab.store))
    columns, rows = attempt_table(attempts_of(jobs.get(ADMIN, job)), now_s=0.0)
    places = [columns.index(name) for name in ("ATTEMPT", "STATE", "DECISION")]
    return [(row[places[0]], row[places[1]], row[places[2]]) for row in rows]


def test_attempts_at_jobs_of_a_set_tell_what_the_set_decided(sets: SetWriter, lab: SetLab) -> None:
    restarted(lab, sets, "RestartJobSet")
    assert attempts_told(lab, "train-workers-0") == [
        ("1", "Failed", "RestartJobSet: rule ruleRestartJobSet"),
        ("2", "Failed", "FailJobSet: RestartJobSet is refused: 1 of 1 restarts are used (maxRestarts)"),
    ]
    assert attempts_told(lab, "train-driver-0") == [
        ("1", "Replaced", "RestartJobSet: job train-workers-0 failed, rule ruleRestartJobSet"),
        ("2", "Cancelled", ""),
    ]


def test_a_job_that_its_sets_restart_left_alone_has_no_decision(sets: SetWriter, lab: SetLab) -> None:
    restarted(lab, sets, "RestartReplicatedJob")
    assert [told[:2] for told in attempts_told(lab, "train-driver-0")] == [("1", "Cancelled")]
    assert attempts_told(lab, "train-workers-1")[0][1:] == (
        "Replaced",
        "RestartReplicatedJob: job train-workers-0 failed, rule ruleRestartReplicatedJob",
    )


def test_why_an_attempt_of_a_job_was_replaced_names_the_job_that_failed(sets: SetWriter, lab: SetLab) -> None:
    restarted(lab, sets, "RestartJobSet", most=2)
    first, second = (Explainer(lab.store).why("train-driver-0", number).summary for number in (1, 2))
    assert first[0] == "Attempt 1 was replaced because job train-workers-0 failed."
    assert "This is restart 1 of 2 (maxRestarts)." in first
    assert "This is restart 2 of 2 (maxRestarts)." in second
