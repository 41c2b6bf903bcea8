"""Job sets and Kubernetes Jobs over REST and the client, with the real controller behind them in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.terms.states import JobSetPhase
from holdfast.errors import AlreadyExists, Conflict, InvalidManifest, InvalidRequest, NotFound
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest, rule

if TYPE_CHECKING:
    import httpx

    from holdfast.client import Client

YAML = {"content-type": "application/yaml"}
TWO = manifest(replicatedJobs=[group("driver"), group("workers", 2)])
TEXT = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        template:
          spec:
            containers:
            - {name: main, image: busybox}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  completions: 2
  completionMode: Indexed
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: pi, image: perl, command: [perl]}]
"""


def paths(response: httpx.Response) -> list[str]:
    return [entry["path"] for entry in response.json()["errors"]]


def test_a_set_is_created_read_and_followed_to_its_end(http: httpx.Client, lab: SetLab) -> None:
    lab.plan = lambda _: exits(0, after_s=5.0)
    created = http.post("/api/v1/jobsets", json=TWO)
    assert created.status_code == 201
    assert created.json()["warnings"][0]["message"].startswith("image busybox is ignored")
    assert (created.json()["result"], created.json()["state"], created.json()["jobs"]) == ("created", "Pending", 3)
    lab.pass_s(2)
    view = http.get(created.headers["location"]).json()
    assert (view["state"], view["ready"], view["queue"]) == ("Running", 3, "default")
    assert [(one["name"], one["replicas"], one["active"]) for one in view["groups"]] == [
        ("driver", 1, 1),
        ("workers", 2, 2),
    ]
    assert [(one["name"], one["state"], one["pods"]["active"]) for one in view["children"]] == [
        ("train-driver-0", "Running", 1),
        ("train-workers-0", "Running", 1),
        ("train-workers-1", "Running", 1),
    ]
    assert view["manifest"]["kind"] == "JobSet"
    lab.pass_s(10)
    done = http.get("/api/v1/jobsets/train").json()
    assert (done["state"], done["terminal"], done["succeeded"]) == ("Completed", "Completed", 3)
    assert [one["type"] for one in done["conditions"] if one["status"]] == ["Completed"]


def test_yaml_is_read_as_elsewhere_and_refusals_have_lines(http: httpx.Client) -> None:
    refused = http.post("/api/v1/jobsets", content=TEXT, headers=YAML)
    (entry,) = refused.json()["errors"]
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_manifest")
    assert (entry["path"], entry["line"]) == (
        "spec.replicatedJobs[0].template.spec.template.spec.containers[0].command",
        13,
    )
    assert "command" in entry["hint"]
    lenient = http.post("/api/v1/jobsets?lenient=true", content=TEXT, headers=YAML)
    assert lenient.status_code == 201
    assert entry["path"] in [warning["path"] for warning in lenient.json()["warnings"]]
    assert http.get("/api/v1/jobsets/train").json()["lenient"] is True


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (TEXT + "---\n" + TEXT, "application/yaml", 422),
        ("", "application/yaml", 422),
        ("{", "application/json", 422),
        (TEXT, "text/plain", 415),
        ("kind: Queue\napiVersion: holdfast.dev/v1\nmetadata: {name: q}\n", "application/yaml", 422),
        (JOB, "application/yaml", 422),
    ],
)
def test_bodies_that_are_no_set_are_refused(http: httpx.Client, body: str, media_type: str, status: int) -> None:
    for method, path in (("POST", "/api/v1/jobsets"), ("PUT", "/api/v1/jobsets/train")):
        response = http.request(method, path, content=body, headers={"content-type": media_type})
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"


def test_a_dry_run_stores_nothing(http: httpx.Client, client: Client) -> None:
    response = http.post("/api/v1/jobsets?dry_run=true", json=TWO)
    assert (response.status_code, response.json()["result"]) == (200, "valid")
    assert client.check_job_set(TWO, name="train").result == "valid"
    assert list(client.job_sets()) == []


def test_applying_creates_changes_and_leaves_alone(client: Client, lab: SetLab) -> None:
    assert client.put_job_set("train", TWO).result == "created"
    lab.pass_s(2)
    assert client.put_job_set("train", TWO).result == "unchanged"
    suspended = {**TWO, "spec": {**TWO["spec"], "suspend": True}}
    assert client.put_job_set("train", suspended).result == "updated"
    lab.pass_s(30)
    found = client.job_set("train")
    assert (found.state, found.generation, found.suspend) == ("Suspended", 2, True)
    with pytest.raises(InvalidManifest) as caught:
        client.put_job_set("train", manifest(replicatedJobs=[group("driver")]))
    assert [problem.path for problem in caught.value.problems] == ["spec.replicatedJobs"]
    with pytest.raises(InvalidManifest):
        client.put_job_set("other", TWO)
    with pytest.raises(NotFound):
        client.put_job_set("other", manifest("other", replicatedJobs=[group("a")]), must_exist=True)


def test_the_same_key_creates_once(client: Client) -> None:
    first = client.create_job_set(TWO, key="k")
    assert client.create_job_set(TWO, key="k").id == first.id
    with pytest.raises(AlreadyExists):
        client.create_job_set(TWO)


def test_lists_are_cut_into_pages(client: Client, http: httpx.Client) -> None:
    for name in ("c", "a", "b"):
        client.create_job_set(manifest(name, replicatedJobs=[group("w", 3)]))
    page = http.get("/api/v1/jobsets?limit=2").json()
    assert [one["name"] for one in page["items"]] == ["a", "b"]
    rest = http.get("/api/v1/jobsets", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert ([one["name"] for one in rest["items"]], rest["next_cursor"]) == (["c"], None)
    assert [one.name for one in client.job_sets(limit=1)] == ["a"]
    first = http.get("/api/v1/jobsets/a/jobs?limit=2").json()
    assert [one["name"] for one in first["items"]] == ["a-w-0", "a-w-1"]
    assert [one.name for one in client.job_set_jobs("a")] == ["a-w-0", "a-w-1", "a-w-2"]
    for path in ("/api/v1/jobsets", "/api/v1/jobsets/b/jobs", "/api/v1/jobs"):
        refused = http.get(path, params={"cursor": first["next_cursor"]})
        assert (refused.status_code, paths(refused)) == (422, ["query.cursor"])


def test_a_list_with_many_filters_has_a_next_page(client: Client, http: httpx.Client) -> None:
    labels = {f"team-{number}": "x" * 60 for number in range(4)}
    for name in ("a", "b"):
        client.create_job_set(
            {**manifest(name, replicatedJobs=[group("w")]), "metadata": {"name": name, "labels": labels}}
        )
    where: dict[str, Any] = {
        "state": list(JobSetPhase),
        "label": [f"{key}={value}" for key, value in labels.items()],
        "limit": 1,
    }
    cursor = http.get("/api/v1/jobsets", params=where).json()["next_cursor"]
    rest = http.get("/api/v1/jobsets", params={**where, "cursor": cursor}).json()
    assert [one["name"] for one in rest["items"]] == ["b"]


def test_jobs_are_listed_by_their_set(client: Client, http: httpx.Client, lab: SetLab) -> None:
    client.create_job_set(TWO)
    client.submit({"command": ["alone"]})
    by_name = [(job.replicated_job, job.job_index) for job in client.jobs(job_set="train")]
    assert by_name == [("driver", 0), ("workers", 0), ("workers", 1)]
    set_id = client.job_set("train").id
    assert {job.job_set for job in client.jobs(job_set=set_id)} == {set_id}
    assert http.get("/api/v1/jobs?job_set=nope").status_code == 404
    lab.pass_s(2)
    client.delete_job_set("train")
    lab.pass_s(60)
    assert len(list(client.jobs(job_set=set_id))) == 3


def test_a_cursor_is_of_one_set_of_jobs(client: Client, http: httpx.Client) -> None:
    client.create_job_set(TWO)
    page = http.get("/api/v1/jobs?job_set=train&limit=1").json()
    assert http.get("/api/v1/jobs", params={"limit": 1, "cursor": page["next_cursor"]}).status_code == 422
    more = http.get("/api/v1/jobs", params={"job_set": "train", "cursor": page["next_cursor"]}).json()
    assert [one["name"] for one in more["items"]] == ["train-workers-0", "train-workers-1"]


def test_a_set_is_suspended_resumed_restarted_and_deleted(client: Client, lab: SetLab) -> None:
    client.create_job_set(TWO)
    lab.pass_s(2)
    client.suspend_job_set("train", reason="lunch")
    lab.pass_s(30)
    assert client.job_set("train").state == "Suspended"
    client.resume_job_set("train")
    lab.pass_s(2)
    assert client.job_set("train").ready == 3
    client.restart_job_set("train", replicated_job="workers", index=1)
    lab.pass_s(20)
    assert [job.restarts for job in client.job_set_jobs("train")] == [0, 0, 1]
    client.restart_job_set("train")
    lab.pass_s(20)
    assert client.job_set("train").restarts == 1
    client.delete_job_set("train", reason="enough")
    lab.pass_s(60)
    with pytest.raises(NotFound):
        client.job_set("train")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"replicated_job": "nope"}, 404, "not_found"),
        ({"replicated_job": "workers", "index": 7}, 404, "not_found"),
        ({"index": 0}, 422, "invalid_request"),
        ({"replicated_job": "workers", "index": -1}, 422, "invalid_request"),
        ({"group": "workers"}, 422, "invalid_request"),
    ],
)
def test_restarts_of_nothing_are_refused(client: Client, http: httpx.Client, body: Any, status: int, code: str) -> None:  # noqa: ANN401 - any body
    client.create_job_set(TWO)
    response = http.post("/api/v1/jobsets/train/restart", json=body)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_everything_about_a_set_that_is_not_there_is_not_found(http: httpx.Client) -> None:
    for method, rest in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/jobs"),
        ("GET", "/log"),
        ("GET", "/why"),
        ("POST", "/suspend"),
        ("POST", "/resume"),
        ("POST", "/restart"),
    ):
        assert http.request(method, f"/api/v1/jobsets/nope{rest}").status_code == 404, rest


def test_a_set_that_is_over_refuses_what_would_change_nothing(client: Client, lab: SetLab) -> None:
    lab.plan = lambda _: exits(0)
    client.create_job_set(TWO)
    lab.pass_s(10)
    with pytest.raises(Conflict):
        client.suspend_job_set("train")


def test_decisions_are_logged_and_explained(client: Client, lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "rules": [rule("RestartJob")]}
    lab.plan = fails_first("train-workers-1")
    client.create_job_set(manifest(replicatedJobs=[group("workers", 2)], failurePolicy=policy))
    lab.pass_s(30)
    entries = list(client.job_set_log("train"))
    (decided,) = [entry.decision for entry in entries if entry.decision]
    assert (decided.job, decided.attempt, decided.action, decided.granted) == ("train-workers-1", 1, "RestartJob", True)
    assert [(use.name, use.used, use.limit) for use in decided.limits] == [("maxRestarts", 0, 2)]
    assert [one.matched for one in decided.considered] == [True]
    assert {entry.type for entry in entries} >= {"Decision", "Normal"}
    assert [entry.seq for entry in client.job_set_log("train", after=entries[0].seq, limit=1)] == [entries[1].seq]
    assert [entry.seq for entry in client.last_job_set_log("train", tail=1)] == [entries[-1].seq]
    why = client.job_set_why("train")
    assert (why.state, why.headline) == ("Completed", "Job set train is complete: jobset completed successfully.")
    assert [trace.decision.job for trace in why.traces] == ["train-workers-1"]
    assert why.traces[0].summary[0] == "Attempt 1 failed on node n0 after 1s: exit code 3."
    assert client.job_set_why("train", job="train-workers-0").traces == []
    with pytest.raises(NotFound):
        client.job_set_why("train", job="nobody")
    job = client.job("train-workers-1")
    assert (job.attempt, job.replicated_job, job.job_index) == (2, "workers", 1)
    assert job.pods is not None
    assert (job.pods.succeeded, job.pods.completions) == (1, 1)


def test_a_kubernetes_job_is_a_job_with_pods(client: Client, http: httpx.Client, lab: SetLab) -> None:
    lab.plan = lambda _: exits(0)
    sent = http.post("/api/v1/jobs", content=JOB, headers=YAML)
    assert (sent.status_code, len(sent.json()["warnings"])) == (201, 1)
    lab.pass_s(10)
    job = client.job(sent.json()["id"])
    assert (job.name, job.state, job.job_set) == ("pi", "Succeeded", None)
    assert job.pods is not None
    assert (job.pods.succeeded, job.pods.completed_indexes, job.pods.completions) == (2, "0,1", 2)
    assert [one.type for one in job.pods.conditions if one.status][-1] == "Complete"
    assert job.spec["kube"]["completions"] == 2


def test_warnings_of_many_jobs_are_with_each(http: httpx.Client) -> None:
    both = f"{JOB}---\ncommand: [x]\n"
    for dry_run in ("true", "false"):
        items = http.post("/api/v1/jobs", params={"dry_run": dry_run}, content=both, headers=YAML).json()["items"]
        assert [len(item["warnings"]) for item in items] == [1, 0]


def test_a_lenient_reading_takes_jobs_of_images_alone(http: httpx.Client) -> None:
    alone = JOB.replace(", command: [perl]", "")
    refused = http.post("/api/v1/jobs", content=alone, headers=YAML)
    assert paths(refused) == ["spec.template.spec.containers[0].command"]
    assert http.post("/api/v1/jobs?lenient=true", content=alone, headers=YAML).status_code == 201


def test_a_set_sent_as_a_job_is_told_where_to_go(client: Client) -> None:
    with pytest.raises(InvalidRequest) as caught:
        client.submit(TWO)
    (problem,) = caught.value.problems
    assert problem.hint == "job sets are sent to /jobsets"


def test_a_job_of_a_set_cannot_be_cancelled_alone(client: Client, lab: SetLab) -> None:
    client.create_job_set(TWO)
    lab.pass_s(2)
    with pytest.raises(Conflict) as caught:
        client.cancel("train-driver-0")
    assert "job set" in str(caught.value)


def test_what_is_done_to_sets_is_in_the_audit_log(client: Client, http: httpx.Client, lab: SetLab) -> None:
    client.create_job_set(TWO)
    lab.pass_s(2)
    client.suspend_job_set("train", reason="lunch")
    with pytest.raises(NotFound):
        client.delete_job_set("nope")
    items = http.get("/api/v1/audit").json()["items"]
    told = [(one["action"], one["kind"], one["outcome"], one["detail"]) for one in items]
    assert told[-2] == ("suspend", "job-set", "accepted", "lunch")
    assert told[-1][:3] == ("delete", "job-set", "not_found")


def test_sets_are_listed_by_state_and_label(client: Client, http: httpx.Client, lab: SetLab) -> None:
    for name, team in (("a", "blue"), ("b", "red"), ("c", "blue")):
        one = manifest(name, replicatedJobs=[group("w")], suspend=name == "c")
        client.create_job_set({**one, "metadata": {"name": name, "labels": {"team": team}}})
    lab.pass_s(2)

    def named(**where: Any) -> list[str]:  # noqa: ANN401 - any filter
        return [one.name for one in client.job_sets(**where)]

    assert named(labels={"team": "blue"}) == ["a", "c"]
    assert named(states=["running"]) == ["a", "b"]
    assert named(states=["Suspended", "Running"], labels={"team": "blue"}) == ["a", "c"]
    assert named(states=["Suspended"], labels={"team": "red"}) == []
    assert named(labels={"team": "blue"}, limit=1) == ["a"]
    first = http.get("/api/v1/jobsets", params={"label": "team=blue", "limit": 1}).json()["next_cursor"]
    refused = http.get("/api/v1/jobsets", params={"cursor": first, "state": ["Held"], "label": "x"})
    assert paths(refused) == ["query.state", "query.label"]
    assert http.get("/api/v1/jobsets", params={"cursor": first}).status_code == 422
