"""How calls of Backend.AI's door are found, and what their functions are given."""

from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from holdfast.api.backendai.routing import BackendAiCall, BackendAiRoutes
from holdfast.errors import InvalidRequest

ROUTES = BackendAiRoutes()
ID = "6e3b2cde-5b3e-5a52-9a0a-27b1d7c0a111"


class Update(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = "unset"


class Which(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kernel: list[str] = []


@ROUTES.add("POST", "/v2/sessions/search", "session_search")
def search(_: BackendAiCall, body: Update) -> None:
    """Search."""


@ROUTES.add("GET", "/v2/sessions/{session_id}", "session_read")
def get(_: BackendAiCall, session_id: UUID) -> None:
    """Read."""


@ROUTES.add("PATCH", "/v2/sessions/{session_id}", "session_update")
def update(_: BackendAiCall, session_id: UUID, body: Update) -> None:
    """Change."""


@ROUTES.add("GET", "/v2/sessions/{session_id}/logs/{name}", "session_read")
def logs(_: BackendAiCall, session_id: UUID, name: str, query: Which) -> None:
    """Read logs."""


def arguments(method: str, path: str, query: bytes = b"", body: bytes = b"") -> dict[str, object]:
    route, parts = ROUTES.matching(path)[method]
    return route.arguments(parts, query, body)


def test_a_function_is_given_the_parts_of_the_path_the_query_and_the_body() -> None:
    assert arguments("GET", f"/v2/sessions/{ID}") == {"session_id": UUID(ID)}
    patched = arguments("PATCH", f"/v2/sessions/{ID}", body=b'{"name": "n"}')
    assert patched == {"session_id": UUID(ID), "body": Update(name="n")}
    read = arguments("GET", f"/v2/sessions/{ID}/logs/a%2Fb", b"kernel=1&kernel=x%20y")
    assert read == {"session_id": UUID(ID), "name": "a/b", "query": Which(kernel=["1", "x y"])}


def test_an_exact_path_comes_before_one_with_parts_that_fit_it() -> None:
    routes = ROUTES.matching("/v2/sessions/search")
    assert {method: route.handler for method, (route, _) in routes.items()} == {
        "POST": search,
        "GET": get,
        "PATCH": update,
    }


@pytest.mark.parametrize(
    "path",
    ["", "/", "/v2/sessions", "/v2/sessions/", f"/v2/sessions/{ID}/", f"//sessions/{ID}", "/v2/sessions//logs/x"],
)
def test_a_path_with_a_part_too_few_or_too_many_is_none(path: str) -> None:
    assert ROUTES.matching(path) == {}


def test_a_template_is_no_path_of_its_own() -> None:
    with pytest.raises(InvalidRequest):
        arguments("GET", "/v2/sessions/{session_id}")


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("GET", "/v2/sessions/none", b"", b""),
        ("GET", f"/v2/sessions/{ID}", b"unknown=1", b""),
        ("PATCH", f"/v2/sessions/{ID}", b"", b"{"),
        ("PATCH", f"/v2/sessions/{ID}", b"", b'{"name": 1}'),
        ("PATCH", f"/v2/sessions/{ID}", b"", b'{"other": "x"}'),
        ("PATCH", f"/v2/sessions/{ID}", b"", b"[" * 100_000),
    ],
)
def test_what_its_models_do_not_have_is_refused(method: str, path: str, query: bytes, body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        arguments(method, path, query, body)


def test_all_problems_of_a_request_are_told_together_each_with_its_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        arguments("PATCH", "/v2/sessions/none", b"unknown=1", b'{"name": 1, "other": 2}')
    assert [problem.path for problem in caught.value.problems] == ["path.session_id", "query.unknown", "name", "other"]


@pytest.mark.parametrize(
    ("path", "query", "body"),
    [
        (f"/v2/sessions/{ID}/logs/a%00b", b"", b""),
        (f"/v2/sessions/{ID}/logs/a", b"kernel=%00", b""),
        (f"/v2/sessions/{ID}/logs/a", b"kernel=" + b"x" * 9_000, b""),
        (f"/v2/sessions/{ID}/logs/a", b"kernel=1&" * 65, b""),
        (f"/v2/sessions/{ID}", b"", rb'{"name": "\u0000"}'),
        (f"/v2/sessions/{ID}", b"", rb'{"name": "\\\u0000"}'),
    ],
)
def test_texts_with_a_nul_and_long_queries_are_refused(path: str, query: bytes, body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        arguments("PATCH" if body else "GET", path, query, body)


def test_a_backslash_before_the_digits_of_a_nul_is_none() -> None:
    patched = arguments("PATCH", f"/v2/sessions/{ID}", body=rb'{"name": "\\u0000"}')
    assert patched["body"] == Update(name=r"\u0000")


def test_calls_that_only_read_are_told_apart_by_their_operation() -> None:
    assert [route.handler for route in ROUTES if route.reads] == [search, get, logs]
