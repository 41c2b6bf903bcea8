"""A dry run says what a queue would not take in now, and counts nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.job import Queue, UserLimits
from tests.integration.test_rest_api import _refusal, _stored, http, readiness, store
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    import httpx

    from tools.memory_store import MemoryStore

__all__ = ["http", "readiness", "store"]
JOB = {"name": "one", "command": ["true"], "queue": "q"}


def _set(count: int) -> dict[str, Any]:
    document = manifest("set", replicatedJobs=[group("w", count)])
    document["metadata"]["labels"] = {"holdfast.dev/queue": "q"}
    return document


def _rehearsed(http: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
    params = {} if path.endswith("/dry-run") else {"dry_run": "true"}
    return http.post(path, params=params, json=body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/jobs", {**JOB, "name": "next"}),
        ("/api/v1/jobs", {"items": [{**JOB, "name": "next"}]}),
        ("/api/v1/arrays", {**JOB, "name": "sweep", "array": {"indices": "0"}}),
        ("/api/v1/jobsets", _set(1)),
        ("/api/v1/dry-run", {**JOB, "name": "next"}),
        ("/api/v1/dry-run", {"items": [_set(1)]}),
    ],
)
@pytest.mark.parametrize(
    ("queue", "refused"),
    [
        (Queue("q", max_queued=1), ("queue_full", "maxQueued")),
        (Queue("q", submissions_per_minute=1), ("rate_limited", "submissionsPerMinute")),
        (Queue("q", per_user=UserLimits(max_queued=1)), ("queue_full", "perUser.maxQueued")),
        (Queue("q", per_user=UserLimits(submissions_per_minute=1)), ("rate_limited", "perUser.submissionsPerMinute")),
    ],
)
def test_a_dry_run_is_refused_as_the_submission_would_be(
    http: httpx.Client, store: MemoryStore, path: str, body: dict[str, Any], queue: Queue, refused: tuple[str, str]
) -> None:
    store.put_entry(queue)
    for _ in range(3):
        assert _rehearsed(http, path, body).is_success, "nothing is counted"
    assert http.post("/api/v1/jobs", json=JOB).status_code == 201
    problem = _refusal(_rehearsed(http, path, body), 429, refused[0])
    assert [entry["path"] for entry in problem["errors"]] == [f"queue q: {refused[1]}"]
    assert _stored(store) == 1


def test_what_is_together_too_much_is_refused_together(http: httpx.Client, store: MemoryStore) -> None:
    store.put_entry(Queue("q", max_queued=2))
    items = [{**JOB, "name": name} for name in ("a", "b", "c")]
    for path in ("/api/v1/jobs", "/api/v1/dry-run"):
        assert _rehearsed(http, path, {"items": items[:2]}).is_success
        _refusal(_rehearsed(http, path, {"items": items}), 429, "queue_full")
