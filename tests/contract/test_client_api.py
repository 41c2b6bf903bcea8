"""The client means the same in this process and over a socket: one suite, both ways."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.cli.context import Cli
from holdfast.cli.manifests import read_manifests
from holdfast.cli.nouns import Noun
from holdfast.cli.submission.sending import submit_jobs
from holdfast.client import Client
from holdfast.client.transport import HttpRequest, HttpResponse, HttpTransport
from holdfast.domain.access import Principal
from holdfast.domain.failure import Cause, ContainerResult, Failure
from holdfast.domain.job import Attempt, Job, JobState, Node, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, EntityKind, HistoryRow, Outcome, SubStep, attempt_id
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision, LimitUse
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Internal,
    InvalidManifest,
    InvalidPolicy,
    InvalidRequest,
    InvalidSetting,
    NotFound,
    Refused,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)
from holdfast.ports.logs import LogPart
from holdfast.ports.store import Changes
from tests.untimed import Untimed
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI

TOKEN = "s3cret"  # noqa: S105 - a test's own
JOB = {"name": "train", "command": ["true"]}
LOG = b"one\ntwo\nthree\n"


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
        assert (bool(job_id), attempt, rank, stderr) == (True, 1, 0, False)
        return LogPart(LOG[offset : offset + limit], len(LOG), offset)


@contextlib.contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free port until the block ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="uvicorn")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
        assert not thread.is_alive()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def app(store: MemoryStore) -> FastAPI:
    return create_app(
        store=store, clock=Noon(), ids=Counting(), logs=OneLog(), entrance=Entrance(Principal("tester"), TOKEN)
    )


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as url:
        yield url


@pytest.fixture(params=["in process", "over a socket"])
def client(request: pytest.FixtureRequest, app: FastAPI) -> Iterator[Client]:
    if request.param == "in process":
        with in_process(app.state.backend, Principal("tester")) as client:
            yield client
    else:
        with Client(request.getfixturevalue("url"), TOKEN) as client:
            yield client


def _manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _fail_once(store: MemoryStore, job_id: str) -> None:
    """Write what a controller writes when an attempt failed and is tried again."""
    failure = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset({"AppError"}), (ContainerResult(3),), node="n1")
    limits = (LimitUse("globalMaxRetries", 0, None), LimitUse("inline/default", 0, 2))
    decision = Decision(
        Action.RETRY, DecisionCode.RETRY, "a reason", "inline", "default", policy_revision=1, delay_s=2.0, limits=limits
    )
    attempt = Attempt(
        job_id, 1, AttemptStatus.ERROR, ending=Ending.FAILED, failure=failure, decision=decision, retry_at=1002.0
    )
    run = Run(f"{job_id}-1-0-1", job_id, 1, 0, node="n1", executor="local")
    row = HistoryRow(
        EntityKind.ATTEMPT, attempt_id(job_id, 1), 0,
        "StartAttempts", AttemptStatus.PREPARED, AttemptStatus.CREATING, Outcome.SUCCESS, 1, 1,
        steps=(SubStep("rank 0", Outcome.FAILURE, "code", "why"),),
    )  # fmt: skip
    found = store.job(job_id)
    fields = {name: getattr(found, name) for name in Job.__struct_fields__}
    job = Job(**{**fields, "state": JobState.BACKOFF, "attempt": 1, "retry_at": 1002.0, "retries": 1})
    store.commit(
        Changes(
            jobs={job_id: job},
            attempts={attempt.key: attempt},
            runs={run.uid: run},
            history={row.key: row},
            nodes={("local", "n1"): Node("n1", "local", Resources(4000, 8 << 30, 0), seen_at=999.0)},
        )
    )


def test_a_job_is_submitted_read_and_listed(client: Client) -> None:
    job = client.submit({**JOB, "labels": {"team": "nlp"}})
    assert client.job(job.id).labels == {"team": "nlp"}
    assert client.job("train").id == job.id
    assert [one.id for one in client.jobs(states=["queued"], queue="default", labels={"team": "nlp"})] == [job.id]
    assert [one.spec["command"] for one in client.full_jobs(name="train")] == [["true"]]
    assert client.states([job.id, "nope"]) == {job.id: "Queued"}


def test_an_array_is_submitted_once_read_listed_cancelled_and_deleted(client: Client, store: MemoryStore) -> None:
    manifest = {**JOB, "labels": {"team": "nlp"}, "array": {"indices": "0-4", "maxRunning": 2}}
    array = client.submit_array(manifest, key="once")
    assert (array.state, array.total, array.waiting, array.max_running) == ("Queued", 5, 5, 2)
    assert client.submit_array(manifest, key="once").id == array.id
    with pytest.raises(AlreadyExists, match="array 'train' exists already"):
        client.submit_array(manifest)
    assert [one.id for one in client.arrays(states=["queued"], labels={"team": "nlp"})] == [array.id]
    assert list(client.arrays(labels={"team": "vision"})) == []
    assert client.array("train").id == array.id
    assert client.array_why("train").headline == "Array train waits. Of 5 tasks: 5 waiting."
    with pytest.raises(NotFound, match="has not been created yet"):
        client.array_task("train", 4)
    with pytest.raises(NotFound, match="has no task 5"):
        client.array_task("train", 5)
    client.cancel_array("train", reason="no")
    client.delete_array(array.id)
    assert [request.kind.value for request in store.requests(limit=9)] == ["submit", "cancel", "delete"]


def test_an_array_is_checked_without_being_stored_and_is_no_job(client: Client) -> None:
    array = {**JOB, "array": {"indices": "0-4"}}
    assert client.check_array(array).total == 5
    assert list(client.arrays()) == []
    with pytest.raises(InvalidManifest, match="queue 'nope' does not exist"):
        client.submit_array({**array, "queue": "nope"})
    with pytest.raises(InvalidManifest, match="an array cannot be submitted as a job"):
        client.submit(array)
    with pytest.raises(InvalidManifest, match=r"spec\.array"):
        client.submit_array(JOB)


def test_jobs_and_arrays_sent_together_wait_for_each_other_by_name_and_say_so(client: Client) -> None:
    report = {
        "name": "report",
        "command": ["x"],
        "dependsOn": [{"name": "sweep", "condition": "ended", "onUnmet": "hold"}],
    }
    sweep = {"name": "sweep", "command": ["x"], "array": {"indices": "0-4"}, "dependsOn": "prep"}
    prep = {"name": "prep", "command": ["x"]}
    sent: list[dict[str, Any]] = [report, sweep, prep]
    items = client.submit_bulk(sent, key="once").items
    assert [(item.name, item.kind) for item in items] == [("report", "job"), ("sweep", "array"), ("prep", "job")]
    assert [item.id for item in client.submit_bulk(sent, key="once").items] == [item.id for item in items]
    job, array = client.job("report"), client.array("sweep")
    assert (job.state, job.reason) == ("Waiting", "waits for array sweep to end")
    [one] = job.depends_on
    assert (one.kind, one.id, one.name, one.condition) == ("array", array.id, "sweep", "ended")
    assert (one.by_index, one.on_unmet, one.waits) == (False, "hold", True)
    wanted = {"name": f"array/{array.id}", "condition": "ended", "onUnmet": "hold"}
    assert job.spec["dependsOn"] == [wanted]
    assert (array.state, array.reason) == ("Waiting", "waits for job prep to succeed")
    assert [(each.id, each.waits) for each in array.depends_on] == [(items[2].id, True)]
    assert [each.name for each in client.arrays(states=["waiting"])] == ["sweep"]
    assert [each.name for each in client.jobs(states=["waiting"])] == ["report"]
    assert client.array_why("sweep").headline == "Array sweep waits for job prep to succeed. Of 5 tasks: 5 waiting."
    assert client.why("report").summary == ["It waits for array sweep to end. More: holdfast why array sweep"]
    with pytest.raises(InvalidManifest, match="waits for itself through others: a -> b -> a"):
        client.submit_bulk([{**prep, "name": "a", "dependsOn": "b"}, {**prep, "name": "b", "dependsOn": "a"}])
    assert client.job("prep").depends_on == []


def test_lists_of_any_length_are_read_whole_or_up_to_a_limit(client: Client) -> None:
    client.submit_bulk([{"name": f"n{number}", "command": ["x"]} for number in range(2300)])
    assert [job.name for job in client.jobs()] == [f"n{number}" for number in range(2300)]
    assert len(list(client.jobs(limit=1001))) == 1001
    assert list(client.jobs(limit=0)) == []


def test_a_bulk_can_be_checked_without_storing_anything(client: Client) -> None:
    with pytest.raises(InvalidManifest) as caught:
        client.check_bulk([JOB, {"command": ["x"], "queue": "nope", "a": 1}])
    assert [problem.path for problem in caught.value.problems] == ["items[1].a", "items[1].queue"]
    assert [item.status for item in client.check_bulk([JOB, JOB]).items] == ["valid", "valid"]
    assert list(client.jobs()) == []


def test_what_needs_several_requests_is_all_or_none_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.submission.sending._MOST_JOBS", 2)
    lines = [json.dumps(one) for one in ({**JOB, "x": 1}, JOB, JOB, JOB, {"command": ["x"], "queue": "nope"})]
    cli = Cli(stdin=io.StringIO("\n".join(lines)))
    manifests = read_manifests(["-"], cli, allowed=(Noun.JOB,))
    with pytest.raises(InvalidManifest) as caught:
        submit_jobs(client, manifests, cli)
    assert [problem.line for problem in caught.value.problems] == [1, 5]
    assert list(client.jobs()) == []
    assert len(submit_jobs(client, manifests[1:4], cli)) == len(list(client.jobs())) == 3


def test_a_bulk_tells_the_outcome_of_each(client: Client) -> None:
    manifests: list[dict[str, Any]] = [JOB, {"command": ["x"], "queue": "nope"}]
    with pytest.raises(InvalidManifest) as caught:
        client.submit_bulk(manifests)
    assert [problem.path for problem in caught.value.problems] == ["items[1].queue"]
    first, second = client.submit_bulk(manifests, atomic=False).items
    assert (first.status, second.status) == ("created", "rejected")
    assert second.error is not None
    assert second.error.code == "invalid_manifest"


def test_a_submission_with_the_same_key_is_made_once(client: Client) -> None:
    assert client.submit(JOB, key="k").id == client.submit(JOB, key="k").id
    assert client.submit(JOB).id != client.submit(JOB).id
    with pytest.raises(Conflict):
        client.submit({**JOB, "name": "other"}, key="k")


def test_attempts_decisions_history_and_why_tell_one_story(client: Client, store: MemoryStore) -> None:
    job = client.submit({**JOB, "retry": {"retryLimit": 2, "defaultAction": "Retry"}})
    _fail_once(store, job.id)
    (attempt,) = client.attempts(job.id)
    assert attempt == client.attempt(job.id, 1) == client.job(job.id).attempts[0]
    assert (attempt.state, attempt.exit_code, attempt.node) == ("Failed", 3, "n1")
    (decision,) = client.decisions(job.id)
    why = client.why(job.id)
    assert why.decision == attempt.decision
    assert why.decision is not None
    assert decision.model_dump(exclude={"attempt", "run"}) == why.decision.model_dump()
    assert [one.rule for one in why.decision.considered][-1] == "launch-failed"
    assert why == client.why(job.id, attempt=1)
    (row,) = client.history(job.id)
    assert (row.phase, [(step.name, step.message) for step in row.steps]) == ("StartAttempts", [("rank 0", "why")])
    assert [(node.name, node.runs) for node in client.nodes()] == [("n1", 1)]


def test_logs_are_followed_by_offset(client: Client) -> None:
    client.submit(JOB)
    first = client.logs("train", tail=1)
    assert (first.text, first.next_offset) == ("three\n", len(LOG))
    assert client.logs("train", offset=first.next_offset).text == ""


def test_jobs_are_controlled(client: Client, store: MemoryStore) -> None:
    job = client.submit(JOB)
    assert client.hold(job.id, reason="wait").id == job.id
    client.release(job.id)
    client.cancel(job.id, reason="typo")
    assert [(one.kind, one.reason) for one in store.requests(limit=9)][1:] == [
        ("hold", "wait"),
        ("release", ""),
        ("cancel", "typo"),
    ]


def test_the_catalogue_is_edited(client: Client) -> None:
    policy = _manifest("RetryPolicy", "infra", {"retryLimit": 3})
    assert client.policies.create(policy).revision == 1
    assert [client.policies.put("infra", policy, must_exist=True)] == client.policies.list()
    queue = _manifest("Queue", "gpu", {"retryPolicies": ["infra"]})
    assert client.queues.create(queue) == client.queues.put("gpu", queue) == client.queues.get("gpu")
    assert [one.name for one in client.queues.list()] == ["default", "gpu"]
    category = _manifest("FailureCategory", "disk", {"rules": [{"onExitCodes": {"operator": "In", "values": [2]}}]})
    assert client.categories.create(category) == client.categories.put("disk", category)
    assert [one.name for one in client.categories.list() if not one.built_in] == ["disk"]
    client.categories.delete("disk")
    limits = {"StartAttempts": {"timeout": 60.0, "maxRetries": None}}
    assert client.put_settings({"handlerLimits": limits}).handler_limits == limits
    assert client.put_settings({"globalMaxRetries": 5, "defaultPolicyName": "infra"}).global_max_retries == 5
    assert client.settings().default_policy_name == "infra"
    client.put_settings({})
    client.queues.delete("gpu")
    client.policies.delete("infra")
    assert client.policies.list() == []
    assert all(one.built_in for one in client.categories.list())


def test_a_policy_is_edited_only_as_its_editor_knows_it(client: Client) -> None:
    policy, other = (_manifest("RetryPolicy", "infra", {"retryLimit": limit}) for limit in (3, 4))
    with pytest.raises(NotFound):
        client.policies.put("infra", policy, if_match="1")
    client.policies.put("infra", policy)
    client.policies.put("infra", other, if_match="1")
    with pytest.raises(VersionConflict) as caught:
        client.policies.put("infra", policy, if_match="1")
    assert caught.value.current == "2"
    with pytest.raises(VersionConflict):
        client.policies.delete("infra", if_match="1")
    client.policies.delete("infra", if_match="2")
    assert client.policies.list() == []


def test_refusals_come_back_as_the_errors_they_were(client: Client) -> None:
    policy = _manifest("RetryPolicy", "infra", {})
    client.policies.create(policy)
    client.queues.create(_manifest("Queue", "small", {"maxRunning": {"cpu": 1}}))
    cases: list[tuple[type[Exception], Callable[[], object]]] = [
        (NotFound, lambda: client.job("nope")),
        (NotFound, lambda: client.queues.put("q", _manifest("Queue", "q", {}), must_exist=True)),
        (NotFound, lambda: client.job("a/../../b?c=d#e")),
        (AlreadyExists, lambda: client.policies.create(policy)),
        (InvalidPolicy, lambda: client.policies.put("infra", _manifest("RetryPolicy", "infra", {"x": 1}))),
        (InvalidSetting, lambda: client.put_settings({"x": 1})),
        (InvalidRequest, lambda: list(client.jobs(states=["lost"]))),
        (InvalidRequest, lambda: client.job("a" * 256)),
        (InvalidRequest, lambda: client.attempt("nope", 0)),
        (InvalidRequest, lambda: client.cancel("nope", reason="x" * 1001)),
        (InvalidRequest, lambda: client.submit(JOB, key="k" * 256)),
        (Refused, lambda: client.submit({**JOB, "queue": "small", "resources": {"cpu": 2}})),
        (Conflict, lambda: client.queues.delete("default")),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind


def test_all_that_is_wrong_with_a_request_is_told_by_its_place(client: Client) -> None:
    with pytest.raises(InvalidRequest) as caught:
        client.logs("a" * 256, attempt=0, offset=-1)
    problems = caught.value.problems
    assert [one.path for one in problems] == ["path.ref", "query.attempt", "query.offset"]
    assert problems[0].message == "String should have at most 255 characters"


def test_the_server_tells_its_version_health_and_metrics(client: Client) -> None:
    assert client.version().api == "v1"
    assert client.health().status == "ok"
    assert "holdfast_jobs_submitted_total" in client.metrics()


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_only_health_is_told(url: str, token: str | None) -> None:
    with Client(url, token) as stranger:
        assert stranger.health().status == "ok"
        with pytest.raises(Unauthenticated):
            stranger.version()


class Unreliable(HttpTransport):
    """Loses the connection some times, after the server has done its work."""

    losses = 0

    def send(self, request: HttpRequest, timeout_s: float) -> HttpResponse:
        answer = super().send(request, timeout_s)
        if self.losses:
            self.losses -= 1
            raise ConnectionResetError
        return answer


class Foreign(HttpTransport):
    """Something else answers."""

    status = 0

    def send(self, request: HttpRequest, timeout_s: float) -> HttpResponse:
        del request, timeout_s
        return HttpResponse(self.status, b"<html>proxy</html>")


def _unreliable(url: str, losses: int, pauses: list[float]) -> Client:
    transport = Unreliable(url)
    transport.losses = losses
    return Client(url, TOKEN, transport=transport, pause=pauses.append)


def test_a_submission_whose_answer_was_lost_is_made_once(url: str, store: MemoryStore) -> None:
    pauses: list[float] = []
    with _unreliable(url, 2, pauses) as client:
        job = client.submit(JOB)
    assert list(store.count_by_state().values()).count(1) == 1
    assert (store.job("train").id, len(pauses)) == (job.id, 2)


def test_what_must_not_be_done_twice_is_not_sent_again(url: str) -> None:
    pauses: list[float] = []
    with _unreliable(url, 1, pauses) as client, pytest.raises(Unavailable):
        client.policies.create(_manifest("RetryPolicy", "infra", {}))
    assert pauses == []


def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    """Or else what must not be sent twice would fail after every pause."""
    closed = threading.Event()

    def answer_once_each() -> None:
        for _ in range(2):
            with listening.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=answer_once_each)
        answering.start()
        transport = HttpTransport(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with contextlib.closing(transport):
            for _ in range(2):
                assert transport.send(HttpRequest("POST", "/"), 10) == HttpResponse(200, b"ok")
                assert closed.wait(10)
        answering.join()


def test_a_server_that_is_not_there_is_unavailable_with_a_hint() -> None:
    pauses: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", pause=pauses.append) as client, pytest.raises(Unavailable) as caught:
        client.version()
    assert caught.value.hint == "start it with: holdfast up"
    assert len(pauses) == 3


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://[", "http://a:b", "http://a:99999", "http://", ""])
def test_an_address_that_is_none_is_a_setting_at_fault(url: str) -> None:
    with pytest.raises(InvalidSetting), Client(url) as client:
        client.version()


@pytest.mark.parametrize("token", ["secret\n", "sécret", "a\r\nX-Y: z"])
def test_a_token_no_header_can_carry_is_refused_and_not_shown(token: str) -> None:
    with Client("http://127.0.0.1:1", token) as client, pytest.raises(InvalidRequest) as caught:
        client.version()
    assert "Authorization" in str(caught.value)
    assert token.strip() not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(502, Unavailable), (503, Unavailable), (418, InvalidRequest), (200, Internal), (302, Internal)],
)
def test_an_answer_that_is_not_holdfasts_is_an_error(status: int, kind: type[Exception]) -> None:
    transport = Foreign("http://holdfast")
    transport.status = status
    with Client("http://holdfast", transport=transport) as client, pytest.raises(kind):
        client.version()


def test_closing_twice_is_fine(client: Client) -> None:
    client.version()
    client.close()
    client.close()
