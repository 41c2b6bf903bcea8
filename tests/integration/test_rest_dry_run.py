"""Dry runs over REST: they answer as the real request would, and store nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.job import Queue
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    import httpx

    from tests.unit.jobset_lab import SetLab

SMALL = Queue("small")


def _policy(name: str) -> dict[str, Any]:
    rules = [{"name": "all", "action": "Retry"}]
    return {
        "apiVersion": "holdfast.dev/v1",
        "kind": "RetryPolicy",
        "metadata": {"name": name},
        "spec": {"rules": rules},
    }


def _queue(name: str, **spec: object) -> dict[str, Any]:
    return {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


CATEGORY: dict[str, Any] = {
    "apiVersion": "holdfast.dev/v1",
    "kind": "FailureCategory",
    "metadata": {"name": "net"},
    "spec": {"rules": [{"onConditions": ["OOMKilled"]}]},
}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/queues", _queue("new")),
        ("POST", "/queues", _queue("small")),
        ("POST", "/queues", _queue("new", retryPolicies=["nope"])),
        ("PUT", "/queues/small", _queue("small", retryPolicies=["nope"])),
        ("PUT", "/queues/other", _queue("new")),
        ("PUT", "/queues/new?must_exist=true", _queue("new")),
        ("POST", "/retry-policies", _policy("new")),
        ("PUT", "/retry-policies/new?must_exist=true", _policy("new")),
        ("POST", "/retry-policies", {**_policy("new"), "spec": {"rules": 3}}),
        ("POST", "/failure-categories", CATEGORY),
        ("PUT", "/failure-categories/net?must_exist=true", CATEGORY),
        ("PUT", "/settings", {"defaultPolicyName": "nope"}),
        ("PUT", "/settings", {"globalMaxRetries": 3}),
        ("POST", "/jobs", {"command": ["x"], "queue": "nope", "retryPolicies": ["nope"]}),
    ],
)
def test_a_dry_run_answers_as_the_real_request_and_stores_nothing(
    http: httpx.Client, lab: SetLab, method: str, path: str, body: dict[str, Any]
) -> None:
    store = lab.store
    store.put_entry(SMALL)
    before = store.catalogue()
    asked = http.request(method, f"/api/v1{path}{'&' if '?' in path else '?'}dry_run=true", json=body)
    assert store.catalogue() == before
    assert list(store.audit(limit=1)) == []
    done = http.request(method, f"/api/v1{path}", json=body)
    assert asked.status_code == (200 if done.status_code == 201 else done.status_code)
    assert asked.json() == done.json()


def test_what_is_checked_together_may_name_what_comes_before_it(http: httpx.Client, lab: SetLab) -> None:
    store = lab.store
    store.put_entry(SMALL)
    job = {"command": ["x"], "queue": "new", "retryPolicies": ["patient"]}
    items = [job, _queue("new", retryPolicies=["patient"]), _policy("patient")]
    answer = http.post("/api/v1/dry-run?verb=create", json={"items": items})
    assert [item["status"] for item in answer.json()["items"]] == ["valid"] * 3
    assert (len(store.jobs(JobFilter())), set(store.catalogue().queues)) == (0, {"default", "small"})
    refused = http.post("/api/v1/dry-run", json={"items": [job, _queue("new", retryPolicies=["patient"])]})
    assert _paths(refused) == [
        "items[1].spec.retryPolicies[0]",
        "items[0].retryPolicies[0]",
    ]
    taken = http.post("/api/v1/dry-run?verb=create", json={"items": [job, _queue("small")]})
    assert "items[1].name" in _paths(taken)
    assert (refused.status_code, taken.status_code) == (422, 409)


def _paths(response: httpx.Response) -> list[str]:
    return [entry["path"] for entry in response.json()["errors"]]
