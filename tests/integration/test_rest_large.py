"""What is too much for one answer: a list of large jobs ends early, and a server without memory says so."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

import pytest
from fastapi.routing import APIRoute

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.domain.access import Principal
from tests.asgi import asking
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import httpx
    from starlette.routing import BaseRoute

UNAVAILABLE = 503
MANY = 60
NO_THREAD = RuntimeError("can't start new thread")


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    app = create_app(
        store=MemoryStore(), clock=VirtualClock(), ids=Counting(), logs=NoLogs(), entrance=Entrance(Principal("tester"))
    )
    with asking(app) as client:
        yield client


def test_a_page_of_large_jobs_ends_early_and_goes_on_where_it_ended(http: httpx.Client) -> None:
    for number in range(9):
        http.post("/api/v1/jobs", json={"name": f"n{number}", "command": ["true", *["x" * 100_000] * 9]})
    asked, names = {"fields": "full", "limit": "6"}, []
    while asked.get("cursor", asked):
        page = http.get("/api/v1/jobs", params=asked).json()
        names.append([item["name"] for item in page["items"]])
        asked["cursor"] = page.get("next_cursor")
    assert names == [["n0", "n1", "n2", "n3"], ["n4", "n5", "n6", "n7"], ["n8"]]


@pytest.mark.parametrize(
    ("error", "status"), [(MemoryError(), UNAVAILABLE), (NO_THREAD, UNAVAILABLE), (RuntimeError("no"), 500)]
)
def test_who_asks_for_more_than_there_is_memory_for_is_told_so(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def read(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(MemoryStore, "listed", read)
    answer = http.get("/api/v1/jobs")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["code"] == ("unavailable" if status == UNAVAILABLE else "internal")


def test_no_request_takes_a_thread_but_the_one_that_serves_it() -> None:
    app = create_app(
        store=MemoryStore(), clock=VirtualClock(), ids=Counting(), logs=NoLogs(), entrance=Entrance(Principal("tester"))
    )
    routes = [*routes_of(app.routes)]
    assert len(routes) > MANY
    found = [one.dependency for one in app.router.dependencies]
    found += [one.call for route in routes for one in route.dependant.dependencies]
    assert found
    assert [call for call in found if not iscoroutinefunction(call)] == [], "the framework takes a thread for each"


def routes_of(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        yield from routes_of(getattr(getattr(route, "original_router", None), "routes", ()))
