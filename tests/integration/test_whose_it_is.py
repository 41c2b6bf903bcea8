"""Jobs, arrays and job sets belong to whoever submitted them, and are listed by that."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.client import Client
from holdfast.domain.access import Principal, Via
from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import InvalidManifest, InvalidRequest
from holdfast.service.operations.backend import Backend
from holdfast.wire.arrays import ArrayPage, ArrayRerun
from tests.contract.test_client_api import served
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import exits
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.jobset_lab import SetLab

ANN, BEN = Principal("ann", ("lab",), uid=1001), Principal("ben", uid=1002)
JOB = {"name": "train", "command": ["true"]}
ARRAY = {"name": "sweep", "command": ["true"], "array": {"indices": "0-1"}}
KUBE = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "batch"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "command": ["true"]}]}}},
}


@pytest.fixture(params=["over HTTP", "in process"])
def known_as(request: pytest.FixtureRequest, lab: SetLab) -> Iterator[Callable[[Principal], Client]]:
    """Makes clients of one store, each of somebody."""
    ids = Counting()
    with ExitStack() as stack:

        def client(who: Principal) -> Client:
            if request.param == "in process":
                return stack.enter_context(in_process(Backend(lab.store, lab.clock, ids, NoLogs(), who), who))
            app = create_app(store=lab.store, clock=lab.clock, ids=ids, logs=NoLogs(), entrance=Entrance(who))
            return stack.enter_context(Client(stack.enter_context(served(app))))

        yield client


def test_what_somebody_submits_is_theirs_in_every_answer_and_stays_so_when_others_change_it(
    lab: SetLab, known_as: Callable[[Principal], Client]
) -> None:
    ann, ben = known_as(ANN), known_as(BEN)
    job = ann.submit(JOB)
    assert job.model_dump(by_alias=True)["submitted_by"] == "ann"
    ann.submit_bulk([{**JOB, "name": "one"}, {**ARRAY, "name": "among"}])
    assert ann.submit_array(ARRAY).submitted_by == "ann"
    assert ann.create_job_set(manifest("set", replicatedJobs=[group("w", 2)])).submitted_by == "ann"
    assert ann.put_job("batch", KUBE).submitted_by == "ann"
    ben.submit(JOB)
    ben.cancel(job.id)
    lab.pass_s(3.0)
    ben.retry(job.id)
    lab.pass_s(3.0)
    assert ben.job(job.id).submitted_by == "ann"
    assert [(one.name, one.submitted_by) for one in ben.jobs(name="train")] == [("train", "ann"), ("train", "ben")]
    assert {one.submitted_by for one in ben.jobs() if one.array or one.job_set or one.name == "batch"} == {"ann"}
    assert {(one.name, one.submitted_by) for one in ben.arrays()} == {("among", "ann"), ("sweep", "ann")}
    assert ben.job_set("set").submitted_by == "ann"
    assert [ben.why(job.id).submitted_by, ben.job_set_why("set").submitted_by] == ["ann", "ann"]
    assert ben.array_why("sweep").array.submitted_by == "ann"
    stored = lab.store.job(job.id)
    assert (stored.submitted_by, stored.submitter_uid) == ("ann", 1001), "an account that is made again is not her"
    assert (lab.store.workload(Array, "sweep").submitter_uid, lab.store.workload(JobSet, "set").submitter_uid) == (
        1001,
        1001,
    )


def test_a_rerun_belongs_to_whoever_reruns_and_the_first_array_to_whoever_submitted_it(
    lab: SetLab, known_as: Callable[[Principal], Client]
) -> None:
    ann, ben = known_as(ANN), known_as(BEN)
    ann.submit_array(ARRAY)
    lab.pass_s(3.0)
    ann.cancel_array("sweep")
    lab.pass_s(3.0)
    assert ben.rerun_array("sweep", ArrayRerun(cancelled=True)).submitted_by == "ben"
    assert ben.array("sweep").submitted_by == "ann"


def test_lists_are_of_one_user_page_by_page(known_as: Callable[[Principal], Client]) -> None:
    ann, ben = known_as(ANN), known_as(BEN)
    for number in range(3):
        for who in (ann, ben):
            who.submit({**JOB, "name": f"j{number}"})
            who.submit_array({**ARRAY, "name": f"{who.me().name}-{number}"})
            who.create_job_set(manifest(f"{who.me().name}{number}", replicatedJobs=[group("w")]))
    theirs = [one.name for one in ben.jobs(user="ann", limit=4)]
    assert theirs == ["j0", "ann0-w-0", "j1", "ann1-w-0"]
    assert [one.name for one in ann.arrays(user="ben")] == ["ben-0", "ben-1", "ben-2"]
    assert [one.name for one in ann.job_sets(user="ben", limit=2)] == ["ben0", "ben1"]
    assert [*ann.jobs(user="eve"), *ann.arrays(user="eve"), *ann.job_sets(user="eve")] == []


def test_a_cursor_of_one_users_list_is_not_one_of_anothers(known_as: Callable[[Principal], Client]) -> None:
    ann = known_as(ANN)
    for number in range(2):
        ann.submit_array({**ARRAY, "name": f"a{number}"})
    cursor = ann.connection.get("/api/v1/arrays", ArrayPage, {"user": "ann", "limit": 1}).next_cursor
    with pytest.raises(InvalidRequest, match="other filters"):
        ann.connection.send("GET", "/api/v1/arrays", params={"user": "ben", "cursor": cursor})


def test_callers_are_told_who_they_are(known_as: Callable[[Principal], Client]) -> None:
    me = known_as(evolve(ANN, via=Via.TOKEN)).me()
    assert (me.name, me.groups, me.via) == ("ann", ["lab"], "token")


def test_events_say_whose_it_is(lab: SetLab, known_as: Callable[[Principal], Client]) -> None:
    ann = known_as(ANN)
    job = ann.submit(JOB)
    ann.create_job_set(manifest("set", replicatedJobs=[group("w")]))
    ann.submit_array(ARRAY)
    lab.pass_s(3.0)
    told = [*ann.events(types=["job.submitted", "jobset.created"])]
    assert [one.data["submitted_by"] for one in told] == ["ann"] * 5, "a job, a set, its job, and two tasks"
    again = rebuild(one for one in lab.store.events(limit=100) if one.job_id == job.id)
    assert again is not None
    assert again.submitted_by == "ann"


def test_a_report_adds_up_what_everybody_had_and_wasted(lab: SetLab, known_as: Callable[[Principal], Client]) -> None:
    ann, ben = known_as(ANN), known_as(BEN)
    lab.plan = lambda order: exits(1 if order.job_name == "train" and order.attempt == 1 else 0, after_s=360.0)
    half = {"resources": {"cpu": 2, "memory": "512Mi"}, "labels": {"team": "nlp"}}
    ann.submit({**JOB, **half, "gang": 2, "retry": {"retryLimit": 1, "defaultAction": "Retry"}})
    ben.submit_array({**ARRAY, **half, "queue": "default"})
    ben.submit({**JOB, "name": "other"})
    lab.pass_s(800.0, every_s=10.0)
    found = {one.name: one for one in ann.report("user").items}
    assert (found["ann"].runs, found["ann"].failed_runs, found["ben"].runs) == (4, 2, 3)
    assert found["ann"].cpu_hours == pytest.approx(4 * 2 * 0.1, abs=0.05)
    assert found["ann"].wasted_cpu_hours == pytest.approx(2 * 2 * 0.1, abs=0.05)
    assert found["ann"].memory_gib_hours == pytest.approx(4 * 0.5 * 0.1, abs=0.05)
    assert (found["ben"].wasted_cpu_hours, found["ben"].gpu_hours) == (0.0, 0.0)
    total = sum(one.cpu_hours for one in found.values())
    for share, label in (("queue", None), ("group", None), ("label", "team")):
        items = ann.report(share, label=label).items
        assert sum(one.cpu_hours for one in items) == pytest.approx(total), (
            "the same hours, however they are told apart"
        )
    team = {one.name: one.runs for one in ann.report("label", label="team").items}
    assert team == {"": 1, "nlp": 6}, "tasks of arrays have the labels of their array"
    assert ann.report("user", within_s=1).items == []


@pytest.mark.parametrize(("share", "label"), [("label", None), ("user", "team"), ("label", 'a"b'), ("colour", None)])
def test_a_report_by_nothing_that_is_known_is_refused(
    known_as: Callable[[Principal], Client], share: str, label: str | None
) -> None:
    with pytest.raises(InvalidRequest):
        known_as(ANN).report(share, label=label)


def test_a_submission_is_one_entry_of_the_audit_log_with_its_count(known_as: Callable[[Principal], Client]) -> None:
    ann, ben = known_as(ANN), known_as(BEN)
    many = [{**JOB, "name": f"j{number}"} for number in range(1200)]
    first = ann.submit_bulk([*many, {**ARRAY, "name": "among"}], key="k").items[0].id
    ann.submit_bulk([*many, {**ARRAY, "name": "among"}], key="k")
    job = ben.submit(JOB)
    array = ben.submit_array(ARRAY)
    job_set = ann.create_job_set(manifest("set", replicatedJobs=[group("w", 3)]))
    batch = ann.put_job("batch", KUBE)
    with pytest.raises(InvalidManifest):
        ann.submit({**JOB, "queue": "nowhere"})
    ann.check_bulk(many)
    told = [(one.actor, one.action, one.kind, one.name, one.detail) for one in ann.audit() if one.action == "create"]
    assert told == [
        ("ann", "create", "job", first, "1,200 jobs, 1 array"),
        ("ben", "create", "job", job.id, "1 job"),
        ("ben", "create", "array", array.id, "1 array"),
        ("ann", "create", "job-set", job_set.id, "3 jobs"),
        ("ann", "create", "job", batch.id, "1 job"),
    ], "what was sent twice under one key, refused or only checked is none"
    assert list(ann.events(types=["operator"])) == [], "each job has an event of its own"
