"""A program and a server of different age say so."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.client import Client
from holdfast.errors import Internal, InvalidRequest, NotFound
from holdfast.wire.base import REVISION, REVISION_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDER = f"the server is older than this program (API v1.0, here v1.{REVISION}): upgrade the server"
NEWER = f"the server is newer than this program (API v1.{REVISION + 1}, here v1.{REVISION}): upgrade this program"


def problem(status: int, code: str, detail: str, *errors: dict[str, Any]) -> tuple[int, object]:
    """Answer as every server has done."""
    about = {"type": f"https://holdfast.dev/errors/{code}", "title": detail, "code": code, "hint": None}
    return status, {**about, "status": status, "detail": detail, "errors": errors, "resource_version": None}


def old(path: str, query: dict[str, list[str]]) -> tuple[int, object]:
    """Answer as a server that has neither arrays nor filters."""
    if path != "/api/v1/jobs":
        return problem(404, "not_found", f"GET {path} does not exist")
    message = "is not a query parameter of this address"
    unknown = [{"path": f"query.{name}", "message": message, "allowed": ["limit"]} for name in query]
    return problem(422, "invalid_request", "The request is not valid.", *unknown)


@contextmanager
def answering(revision: int | None, given: object = None) -> Iterator[tuple[Client, list[str], list[str]]]:
    """Listen as a server of that revision; yields a client, what it remarks, and the revisions it sent."""
    remarks: list[str] = []
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent.append(self.headers[REVISION_HEADER])
            at = urlsplit(self.path)
            status, body = old(at.path, parse_qs(at.query)) if given is None else (200, given)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            if revision is not None:
                self.send_header(REVISION_HEADER, str(revision))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}") as client:
            client.connection.remark = remarks.append
            yield client, remarks, sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_filter_is_never_left_out_whatever_a_server_knows() -> None:
    with answering(None) as (client, _, _), pytest.raises(InvalidRequest) as refused:
        list(client.job_outcomes(tasks=False, array="sweep"))
    assert refused.value.hint == OLDER


def test_what_an_older_server_does_not_have_is_said_to_be_of_its_age() -> None:
    with answering(None) as (client, _, _), pytest.raises(NotFound) as refused:
        client.overview()
    assert refused.value.hint == OLDER


@pytest.mark.parametrize(
    ("revision", "said", "hint"),
    [
        (REVISION + 1, "this program does not understand what", NEWER),
        (REVISION, "not as Holdfast does", "is this the address of a Holdfast server, with nothing else in between?"),
        (None, "not as Holdfast does", "is this the address of a Holdfast server, with nothing else in between?"),
    ],
    ids=["of a newer server", "of our age", "of something else"],
)
def test_an_answer_that_is_not_understood_is_told_by_age(revision: int | None, said: str, hint: str) -> None:
    with answering(revision, {"unheard": "of"}) as (client, remarks, _), pytest.raises(Internal, match=said) as refused:
        client.why("flop")
    assert (refused.value.hint, remarks) == (hint, [])
    assert ("unheard" in str(refused.value)) is (hint != NEWER)


@pytest.mark.parametrize(("revision", "remark"), [(None, [OLDER]), (REVISION, []), (REVISION + 1, [NEWER])])
def test_a_difference_in_age_is_remarked_once(revision: int | None, remark: list[str]) -> None:
    with answering(revision, {"version": "9", "revision": revision or 0}) as (client, remarks, sent):
        client.version()
        client.version()
    assert remarks == remark
    assert set(sent) == {str(REVISION)}
