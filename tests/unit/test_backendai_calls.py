"""What our client of Backend.AI's door signs, as the door reads it, and which errors refusals become."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.api.backendai.signature import is_signed_by, read_credential, read_day
from holdfast.client.backendai.calls import BackendAiCalls, DoorReach
from holdfast.client.transport import HttpRequest, HttpResponse, Transport
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    HoldfastError,
    Internal,
    InvalidRequest,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from holdfast.wire.backendai.signatures import SignedCall

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = 1_795_000_000.0
SECRET = "a-secret-of-no-server"  # noqa: S105 - as it says
ACCESS = "AKIAEXAMPLE"


class Answering(Transport):
    """Answers every request alike, and remembers the last one."""

    def __init__(self, status: int = 200, content: bytes = b'{"logs": "hi"}') -> None:
        self.response = HttpResponse(status, content)
        self.last = HttpRequest("", "")

    def send(self, request: HttpRequest, timeout_s: float) -> HttpResponse:
        del timeout_s
        self.last = request
        return self.response

    def stream(self, request: HttpRequest, timeout_s: float) -> Iterator[HttpResponse]:
        yield self.send(request, timeout_s)

    def close(self) -> None:
        self.last = HttpRequest("", "")


@pytest.mark.parametrize(
    ("endpoint", "host", "path"),
    [
        ("http://127.0.0.1:7070", "127.0.0.1:7070", ""),
        ("http://[::1]:7070/", "[::1]:7070", ""),
        ("https://door.example/holdfast", "door.example", "/holdfast"),
    ],
)
def test_the_door_reads_what_the_client_signed(endpoint: str, host: str, path: str) -> None:
    transport = Answering()
    calls = BackendAiCalls(DoorReach(endpoint, ACCESS, SECRET), lambda: NOW, transport=transport)
    assert calls.logs("a/b", "k 1") == "hi"
    headers = {name.lower(): value for name, value in transport.last.headers.items()}
    assert (transport.last.target, headers["host"]) == ("/v2/sessions/a%2Fb/logs?kernel_id=k+1", host)
    call = SignedCall.of("GET", path + transport.last.target, headers)
    credential, day = read_credential(headers["authorization"]), read_day(call.date, NOW)
    assert credential.access_key == ACCESS
    assert is_signed_by(SECRET, call, credential, day)
    assert not is_signed_by(SECRET + "x", call, credential, day)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "api_parsing_invalid-parameters", InvalidRequest),
        (401, "user_auth_unauthorized", Unauthenticated),
        (403, "api_auth_forbidden", Forbidden),
        (404, "session_read_not-found", NotFound),
        (409, "session_create_already-exists", AlreadyExists),
        (409, "session_update_conflict", Conflict),
        (429, "api_check-limit_unavailable", RateLimited),
        (500, "session_read_internal-error", Internal),
        (503, "session_read_unavailable", Unavailable),
    ],
)
def test_a_refusal_becomes_the_error_of_its_status(status: int, code: str, kind: type[HoldfastError]) -> None:
    refusal = json.dumps({"type": "x", "title": "Refused.", "error_code": code, "msg": "because"}).encode()
    calls = BackendAiCalls(
        DoorReach("http://127.0.0.1:7070", ACCESS, SECRET), lambda: NOW, transport=Answering(status, refusal)
    )
    with pytest.raises(kind, match="because") as raised:
        calls.get("x")
    assert type(raised.value) is kind


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_of_another_server_is_said_to_be_foreign(status: int) -> None:
    transport = Answering(status, b"<html>Hello</html>")
    calls = BackendAiCalls(DoorReach("http://127.0.0.1:7070", ACCESS, SECRET), lambda: NOW, transport=transport)
    with pytest.raises(HoldfastError, match="not as Holdfast does"):
        calls.get("x")
