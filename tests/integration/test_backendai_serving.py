"""How Backend.AI's door reads requests and answers them, whatever becomes of them; its calls here are the test's."""

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ConfigDict
from starlette.types import Scope

from holdfast.api.backendai.routing import BackendAiCall, BackendAiRoutes
from holdfast.api.backendai.serving import LARGEST_BODY, BackendAiDoor, DoorSetup
from holdfast.api.budget import MemoryBudget
from holdfast.domain.access import Principal
from holdfast.domain.audit import Caller
from holdfast.errors import AlreadyExists, HoldfastError, Internal, NotFound, NotLeader, Unauthenticated
from holdfast.service.operations.backend import Backend
from tests.asgi import asking
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

ROUTES = BackendAiRoutes()
ANN = Principal("ann")


class Name(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    count: int = 0


class Named(BaseModel):
    name: str
    caller: str = ""


@ROUTES.add("POST", "/v2/names", "session_create", status=201)
def create(call: BackendAiCall, body: Name) -> Named:
    """Create."""
    if body.name == "taken":
        message = "there is one of that name"
        raise AlreadyExists(message)
    return Named(name=body.name, caller=call.caller.principal.name)


@ROUTES.add("POST", "/v2/names/later", "session_create")
def later(_: BackendAiCall, body: Name) -> Future[Named]:
    """Create, and answer later."""
    answer: Future[Named] = Future()
    if body.name == "taken":
        answer.set_exception(AlreadyExists())
    else:
        answer.set_result(Named(name=body.name))
    return answer


@ROUTES.add("DELETE", "/v2/names/{name}", "session_purge")
def delete(_: BackendAiCall, name: str) -> None:
    """Delete."""


@ROUTES.add("GET", "/v2/names/{name}", "session_read")
def read(_: BackendAiCall, name: str) -> Named:
    """Read."""
    if name == "defect":
        raise KeyError(name)
    if name == "wrong":
        return Named(name=1)  # type: ignore[arg-type]  # a defect of the door
    raise Internal(name) if name == "internal" else NotFound(f"there is no {name}")


class Lab:
    """A door, and what it told the rest of the process."""

    def __init__(self) -> None:
        self.budget = MemoryBudget(16 * LARGEST_BODY)
        self.refusal: HoldfastError | None = None
        self.written = 0
        self.stranger = False

    async def caller(self, _: Scope) -> Caller:
        if self.stranger:
            raise Unauthenticated
        return Caller(ANN, 0.0, "", "")

    def note(self) -> None:
        self.written += 1

    @contextmanager
    def open(self) -> Iterator[httpx.Client]:
        clock = VirtualClock()
        backend = Backend(MemoryStore(), clock, Counting(), NoLogs(), ANN)
        with ThreadPoolExecutor(2) as threads:
            setup = DoorSetup(backend, self.caller, threads, self.budget, lambda: self.refusal, self.note)
            with asking(BackendAiDoor(setup, ROUTES).answer) as client:
                yield client


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def http(lab: Lab) -> Iterator[httpx.Client]:
    with lab.open() as client:
        yield client
    assert lab.budget.used == 0, "whatever a request took is given back"


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["error_code"]


def test_a_call_is_answered_with_its_status_and_what_it_wrote_is_told(lab: Lab, http: httpx.Client) -> None:
    answer = http.post("/v2/names", json={"name": "ä"})
    assert (answer.status_code, answer.json()) == (201, {"name": "ä", "caller": "ann"})
    assert answer.headers["content-type"] == "application/json"
    assert http.post("/v2/names/later", json={"name": "b"}).json() == {"name": "b", "caller": ""}
    deleted = http.delete("/v2/names/b")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert lab.written == 3


@pytest.mark.parametrize("path", ["/v2/names", "/v2/names/later"])
def test_a_refusal_has_the_code_of_its_call(lab: Lab, http: httpx.Client, path: str) -> None:
    assert refused(http.post(path, json={"name": "taken"})) == (409, "session_create_already-exists")
    assert refused(http.get("/v2/names/b")) == (404, "session_read_not-found")
    assert http.get("/v2/names/b").json()["msg"] == "there is no b"
    assert lab.written == 0


def test_what_is_wrong_with_a_body_is_told_field_by_field(http: httpx.Client) -> None:
    answer = http.post("/v2/names", json={"count": "x", "more": 1})
    assert refused(answer) == (400, "api_parsing_invalid-parameters")
    assert [problem["path"] for problem in answer.json()["data"]] == ["name", "count", "more"]
    assert answer.json()["title"] == "Invalid or Missing API Parameters."


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({}, b"{", 400, "api_parsing_invalid-parameters"),
        ({}, b"", 400, "api_parsing_invalid-parameters"),
        ({}, b'{"name": "\xff"}', 400, "api_parsing_invalid-parameters"),
        ({}, b'{"name": ' + b"[" * 50_000, 400, "api_parsing_invalid-parameters"),
        ({}, b"[" * (LARGEST_BODY + 1), 413, "api_parsing_bad-request"),
        ({"content-length": str(LARGEST_BODY + 1)}, b"{}", 413, "api_parsing_bad-request"),
        ({"content-type": "application/yaml"}, b"{}", 415, "api_parsing_content-type-mismatch"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    lab: Lab, http: httpx.Client, headers: Mapping[str, str], content: bytes, status: int, code: str
) -> None:
    sent: Any = {"content-type": "application/json", **headers}
    assert refused(http.post("/v2/names", content=content, headers=sent)) == (status, code)
    assert lab.written == 0


def test_nothing_of_a_strangers_body_is_read(lab: Lab, http: httpx.Client) -> None:
    lab.stranger = True
    lab.budget.size = 0
    assert refused(http.post("/v2/names", json={"name": "b"})) == (401, "user_auth_unauthorized")


def test_a_body_for_which_there_is_no_room_is_refused_for_now(lab: Lab, http: httpx.Client) -> None:
    with lab.budget.share() as share:
        share.take(share.most)
        with lab.budget.share() as other:
            other.take(share.most)
            answer = http.post("/v2/names", json={"name": "b"})
    assert refused(answer) == (503, "session_create_unavailable")
    assert answer.headers["retry-after"] == "1"


def test_a_server_that_may_not_write_still_answers_who_reads(lab: Lab, http: httpx.Client) -> None:
    lab.refusal = NotLeader()
    assert refused(http.post("/v2/names", json={"name": "b"})) == (503, "session_create_unavailable")
    assert refused(http.get("/v2/names/b")) == (404, "session_read_not-found")


@pytest.mark.parametrize("name", ["defect", "wrong", "internal"])
def test_a_defect_is_logged_and_shows_nothing_of_itself(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = http.get(f"/v2/names/{name}")
    assert answer.status_code == 500
    assert answer.json()["error_code"].endswith("_internal-error")
    assert caplog.records
    assert "KeyError" not in answer.text
    assert "validation" not in answer.text
