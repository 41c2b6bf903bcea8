"""Over REST a queue that takes no more in answers 429, with when to come again where time alone helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.client.errors import of_details
from holdfast.domain.job import Queue
from holdfast.errors import QueueFull, RateLimited
from holdfast.wire.problems import ProblemDetails
from tests.integration.test_rest_api import _refusal, _stored, http, readiness, store

if TYPE_CHECKING:
    import httpx

    from tools.memory_store import MemoryStore

__all__ = ["http", "readiness", "store"]


def _bulk(*names: str) -> dict[str, object]:
    return {"items": [{"name": name, "command": ["true"], "queue": "q"} for name in names]}


def test_a_minute_that_is_full_says_when_there_is_room_again(http: httpx.Client, store: MemoryStore) -> None:
    store.put_entry(Queue("q", submissions_per_minute=2))
    assert http.post("/api/v1/jobs", json=_bulk("a", "b")).status_code in {200, 201}
    answer = http.post("/api/v1/jobs", json={"name": "c", "command": ["true"], "queue": "q"})
    problem = _refusal(answer, 429, "rate_limited")
    assert (answer.headers["retry-after"], problem["retry_after_s"]) == ("60", 60.0)
    error = of_details(ProblemDetails.model_validate(problem))
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == pytest.approx(60.0)
    assert _stored(store) == 2


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_a_bulk_for_which_there_is_no_room_is_refused_whole_and_never_told_to_come_again(
    http: httpx.Client, store: MemoryStore, atomic: str
) -> None:
    store.put_entry(Queue("q", max_queued=2))
    answer = http.post("/api/v1/jobs", params={"atomic": atomic}, json=_bulk("a", "b", "c"))
    problem = _refusal(answer, 429, "queue_full")
    assert "retry-after" not in answer.headers
    assert isinstance(of_details(ProblemDetails.model_validate(problem)), QueueFull)
    assert [entry["path"] for entry in problem["errors"]] == ["queue q: maxQueued"]
    assert _stored(store) == 0
    http.post("/api/v1/jobs", json=_bulk("a", "b"))
    assert _stored(store) == 2
