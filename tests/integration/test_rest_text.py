"""Text that no database and no number can be made of, everywhere it can be sent; PostgreSQL minds most."""

from __future__ import annotations

import json
from contextlib import closing
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.domain.access import Principal
from holdfast.storage.sql import open_store
from tests.asgi import asking
from tests.integration.conftest import Counting, NoLogs
from tests.integration.test_rest_jobsets import TWO
from tests.unit.conftest import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

JOB_MANIFEST = {"command": ["x"], "name": "j", "priority": 1, "env": {"A": "b"}, "retry": {"retryLimit": 3}}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/api/v1/jobs?dry_run=true", JOB_MANIFEST),
    ("POST", "/api/v1/jobsets?dry_run=true", TWO),
    ("PUT", "/api/v1/settings", {"globalMaxRetries": 3}),
    ("POST", "/api/v1/jobs/states", {"ids": ["a"]}),
    ("POST", "/api/v1/jobsets/train/restart", {"replicated_job": "x", "index": 1, "reason": "r"}),
]
HUGE = "9" * 5000


@pytest.fixture
def http(postgres_url: str) -> Iterator[httpx.Client]:
    with closing(open_store(postgres_url)) as store:
        app = create_app(
            store=store, clock=VirtualClock(), ids=Counting(), logs=NoLogs(), entrance=Entrance(Principal("tester"))
        )
        with asking(app) as client:
            client.post("/api/v1/jobs", json=JOB_MANIFEST).raise_for_status()
            client.post("/api/v1/jobsets", json=TWO).raise_for_status()
            yield client


def filled(path: str, text: str = "") -> str:
    """Fill in an address: of its last place with a text, or what there is."""
    path = path.replace("{number}", "1").replace("jobs/{ref}", "jobs/j").replace("jobsets/{ref}", "jobsets/train")
    return path.replace("{ref}", text or "j").replace("{name}", text or "default")


@pytest.mark.parametrize("text", ["%00", "a%00b", "%ED%A0%80", "%FF"])
def test_no_address_and_no_filter_is_a_defect(http: httpx.Client, text: str) -> None:
    for path, calls in http.get("/openapi.json").json()["paths"].items():
        for method, call in calls.items():
            names = [one["name"] for one in call.get("parameters", ()) if one["in"] == "query"]
            sent = [f"{filled(path)}?{name}={value}" for name in names for value in (text, f"{text}=a", f"a={text}")]
            if "{" in path:
                before, place, after = path.rpartition("{ref}" if "{ref}" in path else "{name}")
                sent.append(f"{before}{text}{after.replace('{number}', '1')}" if place else path)
            for address in sent:
                assert http.request(method, address).status_code < 500, f"{method} {address}"


@pytest.mark.parametrize("name", ["queue", "name", "label", "job_set"])
def test_a_filter_that_holds_a_nul_is_refused_by_name(http: httpx.Client, name: str) -> None:
    refused = http.get(f"/api/v1/jobs?{name}=a%00=b")
    assert refused.status_code == 422
    assert [one["path"] for one in refused.json()["errors"]] == [f"query.{name}"]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any document
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from leaves(each, (*path, key))
    yield path


def with_leaf(document: dict[str, Any], path: tuple[Any, ...], text: str) -> str:
    """Write a document as JSON with a text of JSON in one place."""
    changed: Any = {"": deepcopy(document)}
    part = changed
    for key in ("", *path[:-1]) if path else ():
        part = part[key]
    part[path[-1] if path else ""] = "@@"
    return json.dumps(changed[""]).replace('"@@"', text)


@pytest.mark.parametrize("text", [HUGE, f"-{HUGE}", f"{HUGE}.5", "1e5000", '"\\u0000"', '"\\ud800"'])
@pytest.mark.parametrize(("method", "path", "document"), BODIES)
def test_no_number_and_no_text_in_a_body_is_a_defect(
    http: httpx.Client, method: str, path: str, document: dict[str, Any], text: str
) -> None:
    for place in leaves(document):
        body = with_leaf(document, place, text)
        answer = http.request(method, path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code < 500, place


def test_a_number_of_more_digits_than_are_read_is_refused_where_it_is(http: httpx.Client) -> None:
    for media_type in ("application/json", "application/yaml", "application/x-ndjson"):
        sent = json.dumps(JOB_MANIFEST).replace('"priority": 1', f'"priority": {HUGE}')
        refused = http.post("/api/v1/jobs", content=sent, headers={"content-type": media_type})
        assert refused.status_code == 422, media_type
