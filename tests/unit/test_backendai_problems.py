"""How refusals are worded for Backend.AI's clients."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.api.backendai.problems import KINDS, refusal_of
from holdfast.errors import HoldfastError, Problem, all_errors


def test_every_error_of_the_tree_has_a_place_in_the_table() -> None:
    assert set(KINDS) == set(all_errors())


@pytest.mark.parametrize(
    ("error", "status", "code", "slug"),
    [
        (errors.InvalidRequest, 400, "api_parsing_invalid-parameters", "generic-bad-request"),
        (errors.InvalidPolicy, 400, "api_parsing_invalid-parameters", "generic-bad-request"),
        (errors.Unauthenticated, 401, "user_auth_unauthorized", "auth-failed"),
        (errors.Forbidden, 403, "api_auth_forbidden", "permission-denied"),
        (errors.NotFound, 404, "session_read_not-found", "session-not-found"),
        (errors.AlreadyExists, 409, "session_read_already-exists", "session-already-exists"),
        (errors.Conflict, 409, "session_read_conflict", "session-conflict"),
        (errors.Refused, 403, "session_read_forbidden", "generic-forbidden"),
        (errors.QueueFull, 429, "api_check-limit_unavailable", "rate-limit-exceeded"),
        (errors.Unavailable, 503, "session_read_unavailable", "service-unavailable"),
        (errors.EngineError, 502, "session_read_unreachable", "unreachable"),
        (errors.Internal, 500, "session_read_internal-error", "internal-server-error"),
    ],
)
def test_an_error_has_the_status_and_the_code_of_its_class(
    error: type[HoldfastError], status: int, code: str, slug: str
) -> None:
    refusal = refusal_of(error("what is wrong"), "session_read")
    assert (refusal.status, refusal.code) == (status, code)
    body = refusal.as_json()
    assert body.pop("title")
    assert body == {"type": f"https://api.backend.ai/probs/{slug}", "error_code": code, "msg": "what is wrong"}


def test_all_problems_of_an_input_are_listed() -> None:
    problems = [Problem("a.b", "is too long", hint="shorten it"), Problem("c", "is not allowed", ("x", "y"))]
    refusal = refusal_of(errors.InvalidRequest(problems=problems))
    assert refusal.data == [
        {"path": "a.b", "message": "is too long", "hint": "shorten it"},
        {"path": "c", "message": "is not allowed", "allowed": ["x", "y"]},
    ]
    assert refusal.message == "a.b: is too long; hint: shorten it; c: is not allowed; allowed: x, y"


def test_a_long_list_of_problems_is_cut_and_says_how_long_it_was() -> None:
    refusal = refusal_of(errors.InvalidRequest(problems=[Problem(f"p{n}", "x" * 500) for n in range(1_000)]))
    assert len(refusal.data) == 100
    assert refusal.message.startswith("1000 problems: p0: ")
    assert len(refusal.message) == 10_000


def test_a_client_is_told_when_to_come_again() -> None:
    limited = errors.RateLimited("too much")
    limited.retry_after_s = 2.1
    assert refusal_of(limited).headers == {"retry-after": "3"}
    assert refusal_of(errors.Unavailable("busy")).headers == {"retry-after": "1"}
    assert refusal_of(errors.Unauthenticated("who")).headers == {"www-authenticate": "BackendAI"}
