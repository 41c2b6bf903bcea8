"""What people may do with each other's work, over HTTP and in process: their own, and what queues and settings add."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import PRINCIPAL, Entrance
from holdfast.app.inprocess import in_process
from holdfast.client import Client
from holdfast.domain.access import Principal
from holdfast.errors import Forbidden, NotFound
from holdfast.service.access.book import FRESH_S
from holdfast.service.operations.backend import Backend
from holdfast.wire.arrays import ArrayRerun
from tests.contract.test_client_api import served
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import exits
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from tests.unit.jobset_lab import SetLab

LAB = Principal("lab", uid=1000)
ANN, BEN = Principal("ann", ("ml",), uid=1001), Principal("ben", uid=1002)
OPS, GUEST = Principal("ops", uid=1003), Principal("guest", uid=1004)
JOB = {"name": "train", "command": ["true"], "env": {"KEY": "hers"}, "labels": {"env": "prod"}}
ARRAY = {**JOB, "name": "sweep", "array": {"indices": "0-1"}}


class Known:
    """Stands before the server and says who calls, as a gate does."""

    def __init__(self, app: ASGIApp, who: Principal) -> None:
        self._app, self._who = app, who

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[PRINCIPAL] = self._who
        await self._app(scope, receive, send)


class People:
    """Clients of one store, each of somebody; the settings make ops an operator and guest a viewer."""

    def __init__(self, lab: SetLab, make: Callable[[Principal], Client]) -> None:
        self.lab, self.make = lab, make
        self.lab_client = make(LAB)
        self.given({"access": {"operator": ["user:ops"], "viewer": ["user:guest"]}})
        self.ann, self.ben, self.ops, self.guest = map(make, (ANN, BEN, OPS, GUEST))

    def given(self, settings: dict[str, Any]) -> None:
        self.lab_client.put_settings(settings)
        self.lab.pass_s(FRESH_S)

    def queue(self, name: str, *permissions: dict[str, Any]) -> None:
        spec = {"permissions": list(permissions)}
        body = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        self.lab_client.queues.put(name, body)
        self.lab.pass_s(FRESH_S)


@pytest.fixture(params=["over HTTP", "in process"])
def people(request: pytest.FixtureRequest, lab: SetLab) -> Iterator[People]:
    ids = Counting()
    with ExitStack() as stack:

        def client(who: Principal) -> Client:
            if request.param == "in process":
                return stack.enter_context(in_process(Backend(lab.store, lab.clock, ids, NoLogs(), LAB), who))
            app = create_app(store=lab.store, clock=lab.clock, ids=ids, logs=NoLogs(), entrance=Entrance(LAB))
            if who is not LAB:
                app.add_middleware(Known, who=who)
            return stack.enter_context(Client(stack.enter_context(served(app))))

        yield People(lab, client)


def test_people_steer_their_own_and_nobody_elses(people: People) -> None:
    job = people.ann.submit(JOB)
    people.ann.submit_array(ARRAY)
    people.ann.create_job_set(manifest("set", replicatedJobs=[group("w", 1)]))
    ben = people.ben
    for refused in (
        lambda: ben.cancel(job.id),
        lambda: ben.hold("train"),
        lambda: ben.retry(job.id),
        lambda: ben.logs(job.id),
        lambda: ben.cancel_array("sweep"),
        lambda: ben.rerun_array("sweep", ArrayRerun()),
        lambda: ben.suspend_job_set("set"),
        lambda: ben.delete_job_set("set"),
    ):
        with pytest.raises(Forbidden, match="belongs to somebody else") as caught:
            refused()
        assert "permissions of queue default" in (caught.value.hint or "")
    people.ann.hold("train")
    people.ops.release(job.id)
    assert people.ben.submit(JOB).submitted_by == "ben"
    with pytest.raises(Forbidden, match="whose role here is viewer, may not submit jobs: this needs the role user"):
        people.guest.submit(JOB)
    audit = [(one.actor, one.action, one.kind, one.outcome) for one in people.lab_client.audit()]
    assert ("ben", "cancel", "job", "forbidden") in audit


def test_what_somebody_else_runs_is_changed_by_nobody_but_admins(people: People) -> None:
    job = people.ann.submit(JOB)
    people.ann.cancel(job.id)
    people.lab.pass_s(3.0)
    with pytest.raises(Forbidden, match="ops may not change what runs as ann"):
        people.ops.retry(job.id, changes={"command": ["id"]})
    people.lab_client.retry(job.id, changes={"command": ["true"]})


def test_others_see_details_without_environment_unless_the_settings_say_otherwise(people: People) -> None:
    job = people.ann.submit(JOB)
    own, other = people.ann.job(job.id).spec, people.ben.job(job.id).spec
    assert own["env"] == {"KEY": "hers"}
    assert "env" not in other
    assert other["command"] == ["true"]
    assert "KEY" in str(people.lab_client.job(job.id).spec)
    assert people.ben.why(job.id).name == "train"
    people.given({"othersSee": "everything"})
    assert people.ben.job(job.id).spec["env"] == {"KEY": "hers"}


def test_where_others_see_that_jobs_exist_lists_say_that_they_are_anothers(people: People) -> None:
    job = people.ann.submit(JOB)
    people.ben.submit({**JOB, "name": "own", "env": {}})
    people.given({"othersSee": "existence"})
    assert [(one.name, one.queue) for one in people.ben.jobs()] == [
        ("another user's job", "default"),
        ("own", "default"),
    ]
    assert "hers" not in str([one.model_dump() for one in people.ben.full_jobs()])
    with pytest.raises(Forbidden):
        people.ben.job(job.id)
    assert [one.name for one in people.ops.jobs()] == ["train", "own"]


def test_where_others_see_nothing_it_is_as_if_there_were_nothing_also_page_by_page(people: People) -> None:
    for number in range(4):
        people.ann.submit({**JOB, "name": f"hers-{number}"})
        people.ben.submit({**JOB, "name": f"his-{number}"})
    people.ann.submit_array(ARRAY)
    people.ann.create_job_set(manifest("set", replicatedJobs=[group("w", 1)]))
    people.given({"othersSee": "nothing"})
    ben = people.ben
    assert [one.name for one in ben.jobs(limit=2)] == ["his-0", "his-1"]
    assert list(ben.arrays()) == []
    assert list(ben.job_sets()) == []
    assert {one.name for one in people.ops.arrays()} == {"sweep"}
    hidden = next(people.ann.jobs())
    for refused in (
        lambda: ben.job(hidden.id),
        lambda: ben.cancel("hers-1"),
        lambda: ben.why("hers-1"),
        lambda: ben.array("sweep"),
        lambda: ben.job_set("set"),
    ):
        with pytest.raises(NotFound, match="of yours has the id or name") as caught:
            refused()
        assert caught.value.hint is None, "a hint would name what is there"
    own = [one.id for one in ben.jobs()]
    assert [*ben.states([hidden.id, own[0]])] == [own[0]]
    assert {one.subject for one in ben.events()} == {f"jobs/{key}" for key in own}


def test_who_asked_for_what_of_a_job_is_told_with_it_and_all_else_to_operators_only(people: People) -> None:
    job = people.ann.submit(JOB)
    people.ann.cancel(job.id)
    people.queue("gpu")
    [acted] = [one for one in people.ben.events() if "operator" in one.type]
    assert (acted.subject, acted.data["actor"], acted.data["action"]) == (f"jobs/{job.id}", "ann", "cancel")
    assert (acted.data.get("origin") or "", acted.data.get("request_id") or "") == ("", "")
    told = [one for one in people.ops.events() if "operator" in one.type]
    assert len(told) > 1
    assert any(one.data["origin"] for one in told if one.subject == acted.subject)
    people.given({"othersSee": "nothing"})
    assert [*people.ben.events()] == []


def test_the_verb_preempt_of_a_queue_lets_others_take_places_in_it_and_nothing_else(people: People) -> None:
    people.queue(
        "gpu", {"subjects": ["user:ann"], "verbs": ["submit"]}, {"subjects": ["user:ben"], "verbs": ["preempt"]}
    )
    people.lab.plan = lambda _: exits(0, after_s=1000.0)
    jobs = [people.ann.submit({**JOB, "queue": queue}).id for queue in ("gpu", "default")]
    people.lab.pass_s(5)
    people.ben.preempt(jobs[0], reason="a demo")
    for refused in (
        lambda: people.ben.cancel(jobs[0]),
        lambda: people.ben.preempt(jobs[1]),
        lambda: people.ben.preempt_node("n0"),
        lambda: people.guest.preempt(jobs[0]),
    ):
        with pytest.raises(Forbidden, match="may not"):
            refused()
    people.lab.pass_s(5)
    assert [people.ann.job(job).attempt for job in jobs] == [2, 1], "what was refused for one was asked of none"
    assert "asked by ben: a demo" in " ".join(people.ann.why(jobs[0], attempt=1).summary)
    assert sorted(one.id for one in people.ops.preempt_node("n0")) == sorted(jobs)
    people.lab.pass_s(5)
    assert [people.ann.job(job).attempt for job in jobs] == [3, 2]
    with pytest.raises(NotFound, match="n7"):
        people.ops.preempt_node("n7")


def test_a_queue_with_permissions_takes_jobs_only_of_those_it_names_and_lets_them_do_what_it_says(
    people: People,
) -> None:
    people.queue(
        "gpu", {"subjects": ["group:ml"], "verbs": ["submit"]}, {"subjects": ["user:ben"], "verbs": ["logs", "cancel"]}
    )
    elsewhere = manifest("set", replicatedJobs=[group("w", 1)])
    elsewhere["metadata"]["labels"] = {"holdfast.dev/queue": "gpu"}
    job = people.ann.submit({**JOB, "queue": "gpu"})
    with pytest.raises(Forbidden, match="ben may not submit this: queue gpu allows it only for some") as caught:
        people.ben.submit({**JOB, "queue": "gpu"})
    assert "permissions of queue gpu with the verb submit for user:ben" in (caught.value.hint or "")
    rejected = people.ben.submit_bulk([{**JOB, "queue": "gpu"}, JOB], atomic=False).items
    assert [one.status for one in rejected] == ["rejected", "created"]
    with pytest.raises(Forbidden):
        people.ben.submit_array({**ARRAY, "queue": "gpu"})
    with pytest.raises(Forbidden):
        people.ops.create_job_set(
            {
                **manifest("set", replicatedJobs=[group("w", 1)]),
                "metadata": {"name": "set", "labels": {"holdfast.dev/queue": "gpu"}},
            }
        )
    assert people.ben.job(job.id).spec["env"] == {"KEY": "hers"}, "who may read logs sees the environment"
    people.ben.cancel(job.id)
    with pytest.raises(Forbidden, match="may not change this"):
        people.ben.hold(job.id)


def test_operators_change_queues_but_not_who_may_use_them(people: People) -> None:
    people.queue("gpu", {"subjects": ["group:ml"], "verbs": ["submit"]})
    closed = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "gpu"}, "spec": {"weight": 2}}
    for change in (lambda: people.ops.queues.put("gpu", closed), lambda: people.ops.queues.delete("gpu")):
        with pytest.raises(Forbidden, match="may not change the permissions of queue gpu: this needs the role admin"):
            change()
    closed["spec"] = {"weight": 2, "permissions": [{"subjects": ["group:ml"], "verbs": ["submit"]}]}
    people.ops.queues.put("gpu", closed)


def test_operators_say_who_works_in_a_queue_they_create_but_not_who_reads_others_logs(people: People) -> None:
    def made(name: str, *verbs: str) -> dict[str, Any]:
        spec = {"permissions": [{"subjects": ["user:ann", "user:ops"], "verbs": list(verbs)}]}
        return {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}

    people.ops.queues.create(made("hers", "submit", "watch", "cancel"))
    assert people.ann.submit({**JOB, "queue": "hers"}).queue == "hers"
    with pytest.raises(Forbidden, match="may not change the permissions of queue spied"):
        people.ops.queues.create(made("spied", "submit", "logs"))


def test_operators_delete_a_queue_they_created_until_an_admin_gives_logs_away_in_it(people: People) -> None:
    def made(*verbs: str) -> dict[str, Any]:
        spec = {"permissions": [{"subjects": ["user:ann"], "verbs": list(verbs)}]}
        return {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "theirs"}, "spec": spec}

    people.ops.queues.create(made("submit"))
    with pytest.raises(Forbidden, match="may not change the permissions of queue theirs"):
        people.ops.queues.put("theirs", made("submit", "cancel"))
    people.ops.queues.delete("theirs")
    people.ops.queues.create(made("submit"))
    people.lab_client.queues.put("theirs", made("submit", "logs"))
    with pytest.raises(Forbidden, match="may not change the permissions of queue theirs"):
        people.ops.queues.delete("theirs")
    people.lab_client.queues.delete("theirs")
    people.lab_client.queues.create(made("submit"))
    with pytest.raises(Forbidden, match="may not change the permissions of queue theirs"):
        people.ops.queues.delete("theirs")


def test_a_report_names_nobody_whose_work_is_hidden_and_still_adds_up(people: People) -> None:
    for who, name in ((people.ann, "hers"), (people.ben, "his")):
        who.submit({**JOB, "name": name, "group": name})
    people.lab.pass_s(20_000.0, every_s=500.0)
    seen = people.ops.report("user").items
    assert {one.name for one in seen} == {"ann", "ben"}
    assert {one.name for one in people.ben.report("user").items} == {"ann", "ben"}, "others see details, by default"
    people.given({"othersSee": "nothing"})
    found = {one.name: one for one in people.ben.report("user").items}
    assert set(found) == {"ben", "other users"}
    assert sum(one.cpu_hours for one in found.values()) == pytest.approx(sum(one.cpu_hours for one in seen))
    assert [one.name for one in people.ben.report("group").items] == ["his"]
    assert {one.name for one in people.ben.report("label", label="env").items} == {"prod"}
    assert people.ben.report("label", label="env").items[0].runs == 1
    assert {one.name for one in people.ops.report("group").items} == {"hers", "his"}


def test_the_audit_log_says_who_reads_it_once_a_minute_and_admins_aside(people: People) -> None:
    for _ in range(3):
        list(people.ops.audit())
        list(people.lab_client.audit())
    with pytest.raises(Forbidden):
        list(people.ben.audit())
    audit = people.lab_client.audit()
    read = [(one.actor, one.outcome) for one in audit if (one.action, one.kind) == ("read", "audit")]
    assert read == [("ops", "accepted"), ("ben", "forbidden")]


def test_a_rehearsal_refuses_what_writing_it_would_and_nothing_else(people: People) -> None:
    people.ann.submit_array(ARRAY)
    changed = {**ARRAY, "array": {"indices": "0-1", "maxRunning": 1}}
    for may, who in ((True, people.ann), (True, people.ops), (False, people.ben)):
        if may:
            assert [one.status for one in who.check([changed]).items] == ["valid"]
            who.put_array("sweep", changed)
            continue
        with pytest.raises(Forbidden):
            who.check([changed])
        with pytest.raises(Forbidden):
            who.put_array("sweep", changed)
