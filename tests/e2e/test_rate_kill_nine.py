"""Whoever has the server killed gets no more submissions a minute than a queue lets in, and loses none."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import RateLimited, Unavailable
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # a server that dies again and again

RATE = 40
SENDERS, EACH = 6, 20
KILLED_AT = (5, 15, 25, 38, RATE)
"""After how many that were accepted; at last when there is no room."""
MINUTE_S = 60.0


class Crowd:
    """People who submit at once, each job again under its key until there is an answer."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.accepted: dict[str, str] = {}
        self.refused: set[str] = set()
        self.change = threading.Event()

    def send(self, sender: int) -> None:
        for number in range(EACH):
            key = f"{sender}-{number}"
            while key not in self.accepted and key not in self.refused:
                with suppress(Unavailable, OSError, ValueError), self.server.client() as client:
                    self.once(client, key)
                self.change.wait(0.01)

    def once(self, client: Client, key: str) -> None:
        try:
            self.accepted[key] = client.submit({"name": f"j-{key}", "queue": "busy", "command": ["true"]}, key=key).id
        except RateLimited:
            self.refused.add(key)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def limited(client: Client, rate: int | None) -> None:
    spec = {"paused": True, "perUser": {} if rate is None else {"submissionsPerMinute": rate}}
    client.queues.put(
        "busy", {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "busy"}, "spec": spec}
    )


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(first <= one < first + MINUTE_S for one in times) for first in times)


def test_a_server_that_is_killed_again_and_again_takes_no_more_a_minute(server: Server) -> None:
    crowd = Crowd(server)
    try:
        with server.start() as client:
            limited(client, RATE)
        with ThreadPoolExecutor(SENDERS) as senders:
            sending = [senders.submit(crowd.send, one) for one in range(SENDERS)]
            for enough in KILLED_AT:
                wait_until(lambda n=enough: len(crowd.accepted) >= n, f"{enough} that were accepted")  # type: ignore[misc]
                server.end()
                server.start().close()
            for one in sending:
                one.result()
        with server.client() as client:
            taken = {job.name: job for job in client.jobs(queue="busy")}
            times = [datetime.fromisoformat(job.submitted_at).timestamp() for job in taken.values()]
            assert most_in_a_minute(times) <= RATE
            assert {f"j-{key}": job for key, job in crowd.accepted.items()} == {
                name: job.id for name, job in taken.items()
            }
            assert len(crowd.refused) + len(crowd.accepted) == SENDERS * EACH
            assert len(crowd.refused) > 0
            limited(client, None)
            for key in crowd.refused:
                crowd.once(client, key)
            assert crowd.accepted.keys() >= crowd.refused, "who was refused may come again, under the same key"
            assert len(list(client.jobs(queue="busy"))) == SENDERS * EACH
    finally:
        server.clean_up()
