"""What somebody else can learn of one's work, whatever they ask: every operation there is, by its description."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.integration.others_stage import BEN, JOB, KUBE, MARK, Stage, staged
from tests.integration.test_every_operation import BODIES
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

HIDDEN = {
    "nothing": frozenset[str](),
    "existence": frozenset({"zqid"}),
}
"""What may be told of others' work, by what others see: nothing, or the ids of jobs, which no name is part of."""
PRINTED = frozenset({"zqenv", "zqlog"})
"""What is nobody else's business where others see the details."""
TAKEN = {"POST /api/v1/arrays", "POST /api/v1/jobsets", "PUT /api/v1/jobsets/{ref}", "POST /api/v1/dry-run"}
"""What is refused for a name that somebody else's array or job set has, as there is one of a name."""
ABSENT = "zzabsent"


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    address: str
    query: dict[str, str]
    value: str
    """What of somebody else's it names."""

    @property
    def operation(self) -> str:
        return f"{self.method} {self.path}"

    def with_value(self, value: str) -> Call:
        """Name something else."""
        query = {name: value if one == self.value else one for name, one in self.query.items()}
        return self._replace(address=_filled(self.path, value), query=query, value=value)

    def sent(self, by: httpx.Client) -> httpx.Response:
        content = None if self.method in {"GET", "DELETE"} else json.dumps(BODIES.get(self.path, {}))
        headers = {} if content is None else {"Content-Type": "application/json"}
        return by.request(self.method, self.address, params=self.query, content=content, headers=headers)


def _filled(path: str, value: str) -> str:
    given = {"number": "1", "index": "0"}
    return re.sub(r"\{(\w+)\}", lambda place: given.get(place[1], value), path)


def calls(stage: Stage) -> Iterator[Call]:
    """Go through every operation that is described, with all that she has in each place where text may stand."""
    for path, methods in stage.described()["paths"].items():
        for method, operation in methods.items():
            parameters = operation.get("parameters", [])
            needed = {one["name"]: "user" for one in parameters if one["in"] == "query" and one.get("required")}
            named = any(one["in"] == "path" for one in parameters)
            for value in stage.references if named else (ABSENT,):
                yield Call(method.upper(), path, _filled(path, value), needed, value)
            for one in parameters:
                if one["in"] != "query" or named:
                    continue
                for value in stage.values:
                    query = {**needed, one["name"]: value}
                    if path.endswith("/report") and one["name"] == "label":
                        query["share"] = "label"
                    yield Call(method.upper(), path, _filled(path, value), query, value)


def told(answer: httpx.Response, call: Call) -> set[str]:
    """Return which marks an answer has that the question did not have."""
    said = MARK.findall(answer.text + json.dumps(dict(answer.headers)))
    return set(said) - set(MARK.findall(call.address + json.dumps(call.query) + call.value))


Answers = list[tuple[Call, "httpx.Response"]]


def _told(answer: httpx.Response, value: str) -> str:
    """Return an answer without what it names, and without how many events there have been by now."""
    return re.sub(r'"(last|next)":\d+', "", answer.text.replace(value, ABSENT))


SIGHTS = [
    *(pytest.param(each, marks=[] if each == "existence" else pytest.mark.slow) for each in HIDDEN),
    pytest.param("details", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=SIGHTS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("others"), request.param) as found:
        yield found


@pytest.fixture(scope="module")
def answers(stage: Stage) -> Answers:
    return [(call, call.sent(stage.ben)) for call in calls(stage)]


def test_no_answer_to_anything_says_more_of_others_work_than_the_setting_allows(stage: Stage, answers: Answers) -> None:
    assert len({call.operation for call, _ in answers}) >= 60, "every operation that is described"
    leaks = set()
    for call, answer in answers:
        found = told(answer, call)
        leaked = found & PRINTED if stage.sight == "details" else found - HIDDEN[stage.sight]
        if leaked:
            leaks.add((call.operation, *call.query, *sorted(leaked)))
    assert leaks == set()


def test_what_one_may_not_know_of_answers_as_what_is_not_there(stage: Stage, answers: Answers) -> None:
    if stage.sight == "details":
        pytest.skip("others may know of it")
    absent: dict[tuple[str, str, str], httpx.Response] = {}
    different = set()
    for call, here in answers:
        plainly = (
            stage.sight == "existence"
            and call.value in stage.told_ids
            and ("{ref}" in call.path or "job" in call.query)
        )
        if call.value == ABSENT or call.operation in TAKEN or plainly:
            continue
        other = call.with_value(f"{ABSENT}=x" if "=" in call.value else ABSENT)
        key = (other.method, other.address, str(other.query))
        if key not in absent:
            absent[key] = other.sent(stage.ben)
        nowhere = absent[key]
        if here.status_code != nowhere.status_code or _told(here, call.value) != _told(nowhere, other.value):
            different.add((call.operation, *call.query, call.value, here.status_code, nowhere.status_code))
    assert different == set()


def test_a_name_that_is_taken_tells_that_and_nothing_else(stage: Stage) -> None:
    array = {"name": "zqarray", "command": ["true"], "array": {"indices": "0-1"}}
    document = manifest("zqset", replicatedJobs=[group("w", 1)])
    asked = (
        ("POST", "/api/v1/arrays", array),
        ("POST", "/api/v1/jobs", {"items": [array]}),
        ("POST", "/api/v1/dry-run?verb=apply", array),
        ("POST", "/api/v1/jobsets", document),
        ("PUT", "/api/v1/jobsets/zqset", document),
        ("POST", "/api/v1/dry-run?verb=apply", document),
    )
    for method, address, body in asked:
        answer = stage.ben.request(method, address, json=body)
        expected = {409, 422} if stage.sight != "details" else {403, 409, 422}
        assert answer.status_code in expected, answer.text
        assert set(MARK.findall(answer.text)) <= {"zqarray", "zqset", *(["zqann"] if stage.sight == "details" else [])}


def test_nobody_changes_what_somebody_else_runs_by_writing_it_anew(stage: Stage) -> None:
    before = stage.owner.get("/api/v1/jobsets/zqset").json()
    document = manifest("zqset", replicatedJobs=[group("zqworkers", 2)])
    document["spec"]["suspend"] = True
    assert stage.ben.put("/api/v1/jobsets/zqset", json=document).status_code in {403, 409}
    held = {**KUBE, "spec": {**KUBE["spec"], "suspend": True}}
    applied = stage.ben.put("/api/v1/jobs/zqkube", json=held)
    assert applied.json()["submitted_by"] == BEN.name, "a job of one's own, though its name is the same"
    stage.lab.pass_s(3.0)
    assert stage.owner.get("/api/v1/jobsets/zqset").json()["resource_version"] == before["resource_version"]
    assert stage.owner.get(f"/api/v1/jobs/{stage.kube_id}").json()["state"] == "Running"
    again = stage.ben.put("/api/v1/jobs/zqkube", json=held)
    assert (again.json()["id"], again.json()["result"]) == (applied.json()["id"], "unchanged")


def test_an_idempotency_key_of_somebody_else_means_nothing(stage: Stage) -> None:
    key, job = {"Idempotency-Key": "zqkeyed"}, {**JOB, "name": "keyed"}
    hers, his = (stage.done(by.post("/api/v1/jobs", json=job, headers=key)) for by in (stage.her, stage.ben))
    assert his["id"] != hers["id"]
    assert his["submitted_by"] == BEN.name
    assert stage.done(stage.her.post("/api/v1/jobs", json=job, headers=key))["id"] == hers["id"]
    other = stage.ben.post("/api/v1/jobs", json={"command": ["false"]}, headers=key)
    assert other.status_code == 409
    assert "'zqkeyed'" in other.json()["detail"], "as it was sent"


def test_only_what_one_may_watch_can_be_waited_for(stage: Stage) -> None:
    for wanted in ("zqjob", "job/zqjob", stage.job_id, "array/zqarray", "jobset/zqset"):
        answer = stage.ben.post("/api/v1/jobs", json={"name": "after", "command": ["true"], "dependsOn": [wanted]})
        if stage.sight == "details":
            assert answer.status_code == 201, answer.text
            continue
        assert answer.status_code == 422
        absent = stage.ben.post("/api/v1/jobs", json={"name": "after", "command": ["true"], "dependsOn": [ABSENT]})
        kind, _, name = wanted.rpartition("/")
        if not kind:
            assert answer.text.replace(name, ABSENT) == absent.text
        assert set(MARK.findall(answer.text)) <= set(MARK.findall(wanted))


def test_a_name_means_ones_own_job_whoever_used_it_since(stage: Stage) -> None:
    own = stage.done(stage.ben.post("/api/v1/jobs", json={"name": "shared", "command": ["true"]}))["id"]
    stage.done(stage.her.post("/api/v1/jobs", json={"name": "shared", "command": ["true"]}))
    assert stage.done(stage.ben.get("/api/v1/jobs/shared"))["id"] == own
    assert stage.done(stage.ben.post("/api/v1/jobs/shared/cancel"))["id"] == own


def test_what_has_a_gpu_is_named_to_whom_that_may_be_told(stage: Stage) -> None:
    reason = stage.done(stage.ben.get("/api/v1/jobs/mine"))["reason"]
    holder = "zqjob" if stage.sight == "details" else "another user's job"
    assert reason == f"needs 1 gpu, the only one is in use by {holder}"
    assert holder in stage.ben.get("/api/v1/jobs/mine/why").text
    assert holder in stage.ben.get("/api/v1/devices").text
    mine = {"name": "zqalso", "command": ["true"], "resources": {"gpu": 1, "cpu": 2}}
    also = stage.done(stage.her.post("/api/v1/jobs", json=mine))["id"]
    stage.lab.pass_s(2.0)
    assert "in use by zqjob" in stage.done(stage.her.get(f"/api/v1/jobs/{also}"))["reason"], "her own is named to her"


def test_sums_count_what_one_may_know_of(stage: Stage) -> None:
    ben, all_ = (stage.done(by.get("/api/v1/summary")) for by in (stage.ben, stage.owner))
    now, everything = (stage.done(by.get("/api/v1/overview")) for by in (stage.ben, stage.owner))
    if stage.sight == "details":
        assert ben["attempts"] == all_["attempts"]
    else:
        assert ben["attempts"] < all_["attempts"]
        assert ben["failures"] == []
    counts_all = stage.sight != "nothing"
    assert (now["jobs"] == everything["jobs"]) is counts_all
    assert (now["queues"] == everything["queues"]) is counts_all
    assert now["nodes"][0]["used"] == everything["nodes"][0]["used"], "what is free is no secret"


def test_the_events_of_ones_own_arrays_and_job_sets_are_told_whatever_others_see(stage: Stage) -> None:
    document = manifest("his", replicatedJobs=[group("w", 1)])
    stage.done(stage.ben.post("/api/v1/jobsets", json=document))
    stage.done(stage.ben.post("/api/v1/arrays/own/cancel"))
    stage.lab.pass_s(3.0)
    stage.done(stage.ben.delete("/api/v1/jobsets/his"))
    stage.done(stage.ben.delete("/api/v1/arrays/own"))
    stage.lab.pass_s(5.0)
    told = [one for one in every_event(stage.ben) if one["type"].split(".")[2] in {"jobset", "array"}]
    types = {one["type"].removeprefix("dev.holdfast.") for one in told if not MARK.search(json.dumps(one))}
    assert {"jobset.created.v1", "jobset.deleted.v1", "array.ended.v1", "array.deleted.v1"} <= types, types
    hers = {one["type"] for one in told if MARK.search(json.dumps(one))}
    assert bool(hers) is (stage.sight == "details")


def every_event(client: httpx.Client) -> list[dict[str, Any]]:
    """Read the whole event log."""
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        page = client.get("/api/v1/events", params={"after": after, "limit": 1000}).json()
        found += page["items"]
        if not page["items"]:
            return found
        after = page["next"]
