"""A server with Armada's door open, asked over HTTP; no client of Armada's is needed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.e2e.armada_stage import DoorServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Gateway:
    """The JSON gateway of a server that runs."""

    def __init__(self, server: DoorServer, **headers: str) -> None:
        """Remember where it is."""
        self.url = str(server.address()["url"])
        self._headers = headers

    def __call__(self, method: str, path: str, body: object = None, **more: Any) -> httpx.Response:  # noqa: ANN401
        """Send a request; ``body`` is JSON, or bytes as they are."""
        if isinstance(body, bytes):
            more["content"] = body
        elif body is not None:
            more["json"] = body
        more["headers"] = {**self._headers, **more.get("headers", {})}
        return httpx.request(method, f"{self.url}{path}", timeout=30, **more)

    def ok(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any document
        """Send a request that succeeds, and return what JSON is answered."""
        answer = self(method, path, body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, int, str]:
        """Send a request that is refused, and return the status, the code and the sentence."""
        answer = self(method, path, body)
        told = answer.json()
        assert told["error"] == told["message"], told
        return answer.status_code, told["code"], told["message"]

    def submit(self, *commands: list[str], queue: str = "ml", job_set: str = "s", **more: object) -> list[str]:
        """Submit programs, and return the ids of their jobs."""
        items = [item(command, **more) for command in commands]
        body = {"queue": queue, "jobSetId": job_set, "jobRequestItems": items}
        return [one["jobId"] for one in self.ok("POST", "/v1/job/submit", body)["jobResponseItems"]]

    def events(self, job_set: str = "s", queue: str = "ml", **wanted: object) -> Iterator[Mapping[str, Any]]:
        """Follow a job set; what is told of each line."""
        where = f"{self.url}/v1/job-set/{queue}/{job_set}"
        with httpx.stream("POST", where, json=wanted, headers=self._headers, timeout=30) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                yield json.loads(line)

    def told(self, ended: int, job_set: str = "s", **wanted: object) -> list[tuple[str, str, dict[str, Any]]]:
        """Follow a job set until so many jobs have ended: of each message its id, its kind and what is in it."""
        found, over = [], 0
        for line in self.events(job_set, "ml", watch=True, **wanted):
            [(kind, event)] = line["result"]["message"].items()
            found.append((line["result"]["id"], kind, event))
            over += kind in {"succeeded", "cancelled", "preempted"} or (kind == "failed" and not event.get("retryable"))
            if over == ended:
                break
        return found


def item(command: list[str], **more: object) -> dict[str, object]:
    """Return one program as it is submitted."""
    amounts = {"cpu": "100m", "memory": "64Mi"}
    program = {
        "name": "main",
        "image": "busybox",
        "command": command,
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {"priority": 1, "namespace": "default", "podSpec": {"containers": [program]}, **more}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DoorServer]:
    """A server that is not started yet, by whose door everybody is ``ann``."""
    server = DoorServer(tmp_path)
    yield server
    server.clean_up()


@pytest.fixture
def gateway(server: DoorServer) -> Gateway:
    """The gateway of a server where ``ann`` is an admin and there is a queue."""
    server.open()
    gateway = Gateway(server)
    gateway.ok("POST", "/v1/queue", {"name": "ml", "priorityFactor": 1})
    return gateway
