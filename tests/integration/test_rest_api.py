"""The REST API as a whole: what it takes, what it refuses and how it says so, who enters, and how lists are cut."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import errors
from holdfast.api.http.serving.app import Probes, create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.domain.access import Principal
from holdfast.domain.job import Ceiling, Queue
from holdfast.errors import all_errors
from holdfast.ports.logs import LogPart
from holdfast.ports.store import JobFilter
from holdfast.wire.base import REVISION, REVISION_HEADER
from holdfast.wire.problems import STATUS, status_of
from tests.asgi import asking
from tests.untimed import Untimed
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

TOKEN = "s3cret"  # noqa: S105 - a test's own
JOB = {"name": "train", "command": ["true"]}
YAML = {"content-type": "application/yaml"}
PROBLEM = "application/problem+json"


class Noon:
    def now(self) -> float:
        return 1000.0


class Counting:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"job{next(self._numbers):08d}"


class OneLog(Untimed):
    """Every run wrote the same."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        assert not stderr
        assert job_id
        assert (attempt, rank) == (1, 0)
        data = b"one\ntwo\nthree\n"
        return LogPart(data[offset : offset + limit], len(data), offset)


class Readiness:
    """What keeps the server from working; a test may set it."""

    why: str | None = None

    def __call__(self) -> str | None:
        return self.why


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put_entry(Queue("small", max_running=Ceiling(500)))
    return store


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
def http(store: MemoryStore, readiness: Readiness) -> Iterator[httpx.Client]:
    probes, entrance = Probes(ready=readiness), Entrance(Principal("tester"), TOKEN)
    app = create_app(store=store, clock=Noon(), ids=Counting(), logs=OneLog(), entrance=entrance, probes=probes)
    with asking(app, {"authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def _stored(store: MemoryStore) -> int:
    return len(store.jobs(JobFilter()))


def _refusal(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.headers["content-type"] == PROBLEM
    problem: dict[str, Any] = response.json()
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"].endswith(code)
    assert problem["title"]
    assert problem["detail"]
    return problem


def _paths(problem: dict[str, Any]) -> list[str]:
    return [entry["path"] for entry in problem["errors"]]


def test_every_error_class_has_a_status() -> None:
    ours = [kind for kind in all_errors() if kind.__module__ == errors.__name__]
    assert {kind.__name__ for kind in ours} == {kind.__name__ for kind in STATUS}
    assert all(400 <= status_of(kind()) < 600 for kind in all_errors())


def test_one_manifest_makes_a_job_with_an_address(http: httpx.Client) -> None:
    response = http.post("/api/v1/jobs", json=JOB)
    assert response.status_code == 201
    job = http.get(response.headers["location"]).json()
    assert (job["id"], job["name"], job["state"], job["attempts"]) == (response.json()["id"], "train", "Queued", [])
    assert job["submitted_at"] == "1970-01-01T00:16:40.000Z"
    assert job["spec"]["command"] == ["true"]


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/yaml", "name: a\ncommand: [x]\n---\nname: b\ncommand: [x]\n"),
        ("application/x-ndjson", '{"name":"a","command":["x"]}\n{"name":"b","command":["x"]}\n'),
        ("application/json", '{"items":[{"name":"a","command":["x"]},{"name":"b","command":["x"]}]}'),
        ("application/json; charset=utf-8", '{"items":[{"name":"a","shell":"x"},{"name":"b","shell":"x"}]}'),
    ],
)
def test_many_manifests_are_taken_in_every_format(http: httpx.Client, media_type: str, body: str) -> None:
    response = http.post("/api/v1/jobs", content=body, headers={"content-type": media_type})
    items = response.json()["items"]
    assert [(item["index"], item["status"], item["name"]) for item in items] == [
        (0, "created", "a"),
        (1, "created", "b"),
    ]


BAD_JOBS = [
    ("", "application/json", "invalid_manifest", [""]),
    ("", "application/yaml", "invalid_manifest", [""]),
    ("{", "application/json", "invalid_manifest", [""]),
    ("null", "application/json", "invalid_manifest", [""]),
    ("[]", "application/json", "invalid_manifest", [""]),
    ("42", "application/json", "invalid_manifest", [""]),
    ('"text"', "application/json", "invalid_manifest", [""]),
    ("{}", "application/json", "invalid_manifest", ["command"]),
    ('{"command":["x"],}', "application/json", "invalid_manifest", [""]),
    ('{"command":["x"],"priority":NaN}', "application/json", "invalid_manifest", ["priority"]),
    ('{"command":["x"],"command":["y"]}', "application/json", "invalid_manifest", ["command"]),
    ('{"command":["x"]} {"command":["y"]}', "application/json", "invalid_manifest", [""]),
    ('{"name":"\\ud800","command":["x"]}', "application/json", "invalid_manifest", [""]),
    ("command: [x]\ncommand: [y]\n", "application/yaml", "invalid_manifest", ["command"]),
    ("command: [x\n", "application/yaml", "invalid_manifest", [""]),
    ("just text", "application/yaml", "invalid_manifest", [""]),
    ("a: !!python/object:os.system x", "application/yaml", "invalid_manifest", None),
    ('{"command":["x"],"quue":"a","nmae":"b"}', "application/json", "invalid_manifest", ["quue", "nmae"]),
    ('{"command":["x"],"gang":0}', "application/json", "invalid_manifest", ["gang"]),
    ('{"command":["x"],"queue":"nope"}', "application/json", "invalid_manifest", ["queue"]),
    ('{"command":["x"],"queue":"nope","a":1}', "application/json", "invalid_manifest", ["a", "queue"]),
    ('{"command":["x"],"queue":"No Name","a":1}', "application/json", "invalid_manifest", ["queue", "a"]),
    ('{"spec":{"queue":"nope","retryPolicies":[1]}}', "application/json", "invalid_manifest", None),
    ("spec: {command: [x], queue: nope, a: 1}", "application/yaml", "invalid_manifest", ["spec.a", "spec.queue"]),
    ('{"command":["x"],"retryPolicies":["a","b"]}', "application/json", "invalid_manifest", None),
    ('{"command":["x"],"queue":"small"}', "application/json", "refused", ["resources.cpu"]),
    ('{"apiVersion":"holdfast.dev/v1","kind":"Queue"}', "application/json", "invalid_manifest", ["kind"]),
    ('{"items":[]}', "application/json", "invalid_request", ["items"]),
    ('{"items":{}}', "application/json", "invalid_request", ["items"]),
    ('{"items":[],"atomic":true}', "application/json", "invalid_request", ["atomic"]),
    ('{"items":[1]}', "application/json", "invalid_manifest", [""]),
    ('{"items":[{"command":["x"]},{}]}', "application/json", "invalid_manifest", ["items[1].command"]),
    ('{"items":[{"a":1,"queue":"q"},{"queue":"q","command":["x"]}]}', "application/json", "invalid_manifest", None),
    ('{"items":[{"command":["x"]},{"gang":0},7]}', "application/json", "invalid_manifest", None),
    ("[" * 100_000, "application/json", "invalid_manifest", [""]),
]


@pytest.mark.parametrize(("body", "media_type", "code", "paths"), BAD_JOBS, ids=[case[0][:40] for case in BAD_JOBS])
def test_a_bad_submission_is_refused_with_paths_and_stores_nothing(
    http: httpx.Client, store: MemoryStore, *, body: str, media_type: str, code: str, paths: list[str] | None
) -> None:
    response = http.post("/api/v1/jobs", content=body, headers={"content-type": media_type})
    problem = _refusal(response, 403 if code == "refused" else 422, code)
    assert problem["errors"]
    assert paths is None or _paths(problem) == paths
    assert (_stored(store), list(store.requests(limit=9))) == (0, [])


@pytest.mark.parametrize("body", [b"\xff\xfe9", b"{", b"[" * 100_000])
def test_a_small_body_that_is_no_json_is_refused(http: httpx.Client, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    _refusal(http.post("/api/v1/jobs/states", content=body, headers=headers), 422, "invalid_request")


def test_bytes_that_are_no_text_are_refused_with_their_line(http: httpx.Client) -> None:
    problem = _refusal(http.post("/api/v1/jobs", content=b'{\n"a": "\xff"}'), 422, "invalid_manifest")
    assert problem["errors"][0]["line"] == 2


def test_a_problem_names_the_line_the_values_allowed_and_a_hint(http: httpx.Client) -> None:
    problem = _refusal(
        http.post("/api/v1/jobs", content="command: [x]\nquue: a\n", headers=YAML), 422, "invalid_manifest"
    )
    (entry,) = problem["errors"]
    assert (entry["path"], entry["line"], entry["hint"]) == ("quue", 2, "did you mean queue?")
    assert "queue" in entry["allowed"]


BAD_POLICIES = [
    {"rules": [{"action": "Again"}]},
    {"rules": [{"action": "Retry", "onConditions": ["Tired"]}]},
    {"rules": [{"action": "Retry", "onTerminationMessage": "("}]},
    {"rules": [{"action": "Retry", "onExitCodes": {"operator": "Is", "values": [1]}}]},
    {"retryLimit": -1},
    {"retrylimit": 3},
    {"backoff": {"multiplier": 0}},
]


@pytest.mark.parametrize("spec", BAD_POLICIES, ids=str)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_bad_policy_is_refused_with_paths_and_stores_nothing(
    http: httpx.Client, store: MemoryStore, method: str, spec: dict[str, Any]
) -> None:
    body = {"apiVersion": "holdfast.dev/v1", "kind": "RetryPolicy", "metadata": {"name": "infra"}, "spec": spec}
    path = "/api/v1/retry-policies" + ("/infra" if method == "PUT" else "")
    problem = _refusal(http.request(method, path, json=body), 422, "invalid_policy")
    assert all(entry.startswith("spec.") for entry in _paths(problem))
    assert store.catalogue().policies == {}


def _named(kind: str, name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    manifest = {"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": name}}
    return manifest if spec is None else {**manifest, "spec": spec}


@pytest.mark.parametrize(
    ("path", "body", "code", "where"),
    [
        ("retry-policies/infra", _named("Queue", "infra"), "invalid_policy", "kind"),
        ("retry-policies/infra", _named("RetryPolicy", "x", {}), "invalid_policy", "metadata.name"),
        ("queues/q", _named("Queue", "q", {"weight": -1}), "invalid_manifest", "spec.weight"),
        ("queues/q", _named("Queue", "q", {"retryPolicies": ["x"]}), "invalid_manifest", "spec.retryPolicies[0]"),
        ("failure-categories/c", _named("FailureCategory", "c"), "invalid_manifest", "spec"),
        ("settings", {"globalMaxRetries": -1}, "invalid_setting", "globalMaxRetries"),
        ("settings", {"globalMaxRetry": 1}, "invalid_setting", "globalMaxRetry"),
        ("settings", {"defaultPolicyName": "x"}, "invalid_setting", "defaultPolicyName"),
    ],
)
def test_a_bad_catalogue_entry_is_refused_with_its_path(
    http: httpx.Client, store: MemoryStore, *, path: str, body: dict[str, Any], code: str, where: str
) -> None:
    version = store.catalogue_version()
    assert where in _paths(_refusal(http.put(f"/api/v1/{path}", json=body), 422, code))
    assert store.catalogue_version() == version


@pytest.mark.parametrize(
    ("address", "path", "allowed"),
    [
        ("/api/v1/jobs?limit=0", "query.limit", []),
        ("/api/v1/jobs?limit=x", "query.limit", []),
        ("/api/v1/jobs?state=Lost", "query.state", ["Queued"]),
        ("/api/v1/jobs?label=team", "query.label", []),
        ("/api/v1/jobs?fields=some", "query.fields", ["summary", "full"]),
        ("/api/v1/jobs?cursor=x", "query.cursor", []),
        ("/api/v1/jobs?cursor=WzEsICJ4Il0", "query.cursor", []),
        ("/api/v1/jobs?stat=Queued", "query.stat", ["state", "limit"]),
        ("/api/v1/jobs?limit=1&limit=2", "query.limit", []),
        ("/api/v1/queues?limit=1", "query.limit", []),
        ("/healthz?x=1", "query.x", []),
    ],
)
def test_a_bad_query_is_refused_with_its_parameter(
    http: httpx.Client, address: str, path: str, allowed: list[str]
) -> None:
    problem = _refusal(http.get(address), 422, "invalid_request")
    assert _paths(problem) == [path]
    assert set(allowed) <= set(problem["errors"][0]["allowed"])


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("states", {"ids": "x"}, "ids"),
        ("states", {"ids": [1]}, "ids[0]"),
        ("states", {}, "ids"),
        ("states", {"ids": [], "x": 1}, "x"),
        ("states", {"ids": ["x"] * 10_001}, "ids"),
        ("train/cancel", {"why": "x"}, "why"),
        ("train/hold", {"reason": "x" * 1001}, "reason"),
        ("train/release", [], ""),
    ],
)
def test_a_bad_small_body_is_refused_with_its_path(http: httpx.Client, path: str, body: object, where: str) -> None:
    problem = _refusal(http.post(f"/api/v1/jobs/{path}", json=body), 422, "invalid_request")
    assert _paths(problem) == [where]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("GET", "/api/v1/jobs/", 404, "not_found"),
        ("GET", "/api/v1/jobs/nope", 404, "not_found"),
        ("GET", "/api/v1/queues/nope", 404, "not_found"),
        ("DELETE", "/api/v1/jobs", 405, "method_not_allowed"),
        ("PATCH", "/api/v1/settings", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_a_problem_too(
    http: httpx.Client, *, method: str, path: str, status: int, code: str
) -> None:
    _refusal(http.request(method, path), status, code)


def test_a_form_is_not_read(http: httpx.Client) -> None:
    problem = _refusal(http.post("/api/v1/jobs", data={"a": "b"}), 415, "unsupported_media_type")
    assert "application/yaml" in problem["detail"]


@pytest.mark.parametrize("path", ["jobs", "jobs/train/cancel", "jobs/states"])
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_not_read(http: httpx.Client, path: str, *, announced: bool) -> None:
    block = b" " * (1 << 20)
    content = block * 17 if announced else iter([block] * 17)
    headers = {"content-type": "application/json"}
    _refusal(http.post(f"/api/v1/{path}", content=content, headers=headers), 413, "too_large")


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/nothing", "/metrics", "/docs", "/openapi.json", "/"])
@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_shown(http: httpx.Client, path: str, given: str | None) -> None:
    del http.headers["authorization"]
    response = http.get(path, headers={} if given is None else {"authorization": given})
    _refusal(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("path", "status"), [("version", 200), ("nothing", 404), ("jobs?what", 422), ("jobs/a", 404)])
def test_every_answer_says_its_revision_of_the_api(http: httpx.Client, path: str, status: int) -> None:
    answers = [http.get(f"/api/v1/{path}")]
    del http.headers["authorization"]
    answers.append(http.get(f"/api/v1/{path}"))
    assert [answer.status_code for answer in answers] == [status, 401]
    assert {answer.headers[REVISION_HEADER] for answer in answers} == {str(REVISION)}


def test_probes_need_no_token(http: httpx.Client, readiness: Readiness) -> None:
    del http.headers["authorization"]
    assert [http.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    readiness.why = "the controller has stopped"
    assert _refusal(http.get("/readyz"), 503, "unavailable")["detail"] == "the controller has stopped"
    assert http.get("/healthz").status_code == 200


def test_sending_a_submission_again_with_its_key_stores_it_once(http: httpx.Client, store: MemoryStore) -> None:
    headers = {"idempotency-key": "k1"}
    first, again = (http.post("/api/v1/jobs", json=JOB, headers=headers).json() for _ in range(2))
    assert (first["id"], _stored(store)) == (again["id"], 1)
    other = http.post("/api/v1/jobs", json={**JOB, "name": "other"}, headers=headers)
    _refusal(other, 409, "conflict")


def test_a_bulk_of_ten_thousand_is_taken_and_one_more_is_not(http: httpx.Client, store: MemoryStore) -> None:
    items = [{"name": f"n{number}", "command": ["true"]} for number in range(10_000)]
    response = http.post("/api/v1/jobs", json={"items": items})
    assert len(response.json()["items"]) == _stored(store) == 10_000
    problem = _refusal(http.post("/api/v1/jobs", json={"items": [*items, JOB]}), 422, "invalid_request")
    assert _paths(problem) == ["items"]


def test_without_atomic_each_item_has_its_own_outcome(http: httpx.Client, store: MemoryStore) -> None:
    items = [JOB, {"command": ["x"], "queue": "nope"}, {"x": 1}, JOB]
    answer = http.post("/api/v1/jobs", params={"atomic": "false"}, json={"items": items}).json()["items"]
    assert [item["status"] for item in answer] == ["created", "rejected", "rejected", "created"]
    assert answer[1]["error"]["errors"][0]["path"] == "queue"
    assert _stored(store) == 2


def test_pages_are_stable_while_jobs_arrive(http: httpx.Client) -> None:
    names = [f"n{number}" for number in range(7)]
    http.post("/api/v1/jobs", json={"items": [{"name": name, "command": ["x"]} for name in names[:5]]})
    seen: list[str] = []
    cursor: str | None = None
    for late in (*names[5:], None, None, None):
        page = http.get("/api/v1/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [job["name"] for job in page["items"]]
        cursor = page["next_cursor"]
        if late is not None:
            http.post("/api/v1/jobs", json={"name": late, "command": ["x"]})
        if cursor is None:
            break
    assert seen == names


def test_a_cursor_does_not_fit_another_list(http: httpx.Client) -> None:
    http.post("/api/v1/jobs", json={"items": [JOB, JOB]})
    cursor = http.get("/api/v1/jobs?limit=1").json()["next_cursor"]
    problem = _refusal(http.get(f"/api/v1/jobs?queue=default&cursor={cursor}"), 422, "invalid_request")
    assert _paths(problem) == ["query.cursor"]


def test_lists_are_filtered_whatever_the_case_of_a_state(http: httpx.Client) -> None:
    http.post("/api/v1/jobs", json={**JOB, "name": "a", "labels": {"team": "nlp"}})
    http.post("/api/v1/jobs", json={**JOB, "name": "b"})

    def names(query: str) -> list[str]:
        return [job["name"] for job in http.get(f"/api/v1/jobs?{query}").json()["items"]]

    assert names("state=queued&state=HELD") == ["a", "b"]
    assert names("state=failed") == []
    assert names("label=team=nlp") == ["a"]
    assert names("name=b&queue=default&fields=full") == ["b"]


def test_a_policy_is_created_read_replaced_and_deleted_in_every_dialect(http: httpx.Client) -> None:
    armada = "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: infra\nretryLimit: 3\ndefaultAction: Retry"
    native = {"apiVersion": "holdfast.dev/v1", "kind": "RetryPolicy", "metadata": {"name": "infra"}, "spec": {}}
    path = "/api/v1/retry-policies"
    assert _refusal(http.put(f"{path}/infra?must_exist=true", json=native), 404, "not_found")
    created = http.post(path, content=armada, headers=YAML)
    assert (created.status_code, created.json()["revision"], created.json()["spec"]["retryLimit"]) == (201, 1, 3)
    _refusal(http.post(path, json=native), 409, "already_exists")
    assert http.put(f"{path}/infra?must_exist=true", json=native).json()["revision"] == 2
    assert http.get(path).json()["items"] == [http.get(f"{path}/infra").json()]
    assert (http.delete(f"{path}/infra").status_code, http.get(path).json()["items"]) == (204, [])


def test_a_rule_that_nothing_reaches_is_a_warning(http: httpx.Client) -> None:
    spec = {"rules": [{"action": "Retry", "name": "all"}, {"action": "Fail", "name": "late"}]}
    answer = http.put("/api/v1/retry-policies/infra", json=_named("RetryPolicy", "infra", spec)).json()
    assert [warning["path"] for warning in answer["warnings"]] == ["spec.rules[1]"]


def test_a_rule_that_nothing_matches_is_a_warning_to_whoever_writes_or_reads_it(http: httpx.Client) -> None:
    rule = {"onExitCodes": {"operator": "In", "values": [0]}}
    category = _named("FailureCategory", "mine", {"rules": [rule]})
    policy = _named("RetryPolicy", "infra", {"rules": [{"action": "Retry", **rule}]})
    for path, document in (("failure-categories/mine", category), ("retry-policies/infra", policy)):
        for answer in (http.put(f"/api/v1/{path}", json=document), http.get(f"/api/v1/{path}")):
            assert [warning["path"] for warning in answer.json()["warnings"]] == ["spec.rules[0].onExitCodes.values"]
    assert not any(
        each["warnings"] for each in http.get("/api/v1/failure-categories").json()["items"] if each["built_in"]
    )


def test_what_is_read_can_be_sent_back(http: httpx.Client) -> None:
    settings = http.get("/api/v1/settings").json()
    assert http.put("/api/v1/settings", json={**settings, "globalMaxRetries": 0}).json()["globalMaxRetries"] == 0
    queue = http.get("/api/v1/queues/small").json()
    manifest = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "small"}, "spec": queue["spec"]}
    assert http.put("/api/v1/queues/small", json=manifest).json() == queue


def test_logs_are_read_from_an_offset_or_from_the_end(http: httpx.Client) -> None:
    http.post("/api/v1/jobs", json=JOB)
    part = http.get("/api/v1/jobs/train/logs?offset=4&limit=4").json()
    where = {"attempt": 1, "rank": 0, "run": 1, "offset": 4, "next_offset": 8}
    assert part == {**where, "text": "two\n", "finished": False}
    assert http.get("/api/v1/jobs/train/logs?tail=1").json()["text"] == "three\n"


def test_control_is_accepted_or_refused_by_state(http: httpx.Client, store: MemoryStore) -> None:
    http.post("/api/v1/jobs", json=JOB)
    assert http.post("/api/v1/jobs/train/hold").status_code == 202
    assert http.post("/api/v1/jobs/train/cancel", json={"reason": "typo"}).status_code == 202
    assert [(one.kind, one.reason) for one in store.requests(limit=9)] == [
        ("submit", ""),
        ("hold", ""),
        ("cancel", "typo"),
    ]
    http.post("/api/v1/jobs", json={**JOB, "name": "other"})
    _refusal(http.post("/api/v1/jobs/other/release"), 409, "conflict")


def test_metrics_count_by_template_never_by_address(http: httpx.Client) -> None:
    http.post("/api/v1/jobs", json=JOB)
    http.get("/api/v1/jobs/some-name")
    http.get("/nowhere")
    text = http.get("/metrics").text
    assert 'holdfast_jobs{state="Queued"} 1.0' in text
    assert "holdfast_jobs_submitted_total 1.0" in text
    assert 'holdfast_api_requests_total{method="GET",route="/api/v1/jobs/{ref}",status="404"} 1.0' in text
    assert 'route="unmatched"' in text
    assert "some-name" not in text
    assert "nowhere" not in text


def test_the_description_names_every_address_and_its_refusals(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert http.get("/docs").status_code == 200
    for path, methods in document["paths"].items():
        for operation in methods.values():
            problems = [one for status, one in operation["responses"].items() if int(status) >= 400]
            assert problems, path
            assert all(list(one["content"]) == [PROBLEM] for one in problems), path
    assert "/api/v1/jobs/{ref}/why" in document["paths"]
    assert json.dumps(document).count("HTTPValidationError") == 0
