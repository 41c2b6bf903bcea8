"""Jobs that come in by three doors at once under kills of the server: each writes its line into a ledger once."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.errors import Unavailable
from tests.e2e.armada_stage import DoorServer
from tests.e2e.fluster_stage import Connected, RefusedError, launch
from tests.e2e.gateway_stage import Gateway, item
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow  # a server that is killed again and again

JOBS, KILLS = int(os.environ.get("LEDGER_JOBS", "240")), int(os.environ.get("LEDGER_KILLS", "6"))
"""2,001 and 41 take a minute and a half: run those after a change of what a crash passes through."""
TOGETHER = 20
AWAY = (Unavailable, httpx.TransportError, OSError, ValueError)
"""What a server that is killed, or not there yet, is met as."""


class Doors:
    """Submits by each door until it is answered, however often the server is killed meanwhile."""

    def __init__(self, server: DoorServer, ledger: Path) -> None:
        self._server, self._ledger = server, ledger
        self.accepted: Counter[str] = Counter()

    def submit_all(self, door: str, names: Sequence[str]) -> None:
        """Submit jobs of these names by a door, some together."""
        submit = {"native": self.native, "armada": self.armada, "fluster": self.fluster}[door]
        for first in range(0, len(names), TOGETHER):
            submit(names[first : first + TOGETHER])

    def native(self, names: Sequence[str]) -> None:
        jobs = [{"name": name, "command": self._writes(name), "resources": {"cpu": 0.1}} for name in names]

        def submit() -> None:
            with self._server.client() as client:
                client.submit_bulk(jobs, key=names[0])

        self._until_answered("native", len(names), submit)

    def armada(self, names: Sequence[str]) -> None:
        items = [item(self._writes(name), clientId=name) for name in names]
        body = {"queue": "ml", "jobSetId": "s", "jobRequestItems": items}

        def submit() -> None:
            answer = Gateway(self._server)("POST", "/v1/job/submit", body)
            if answer.status_code >= 500:
                raise Unavailable(answer.text)
            assert answer.status_code == 200, answer.text

        self._until_answered("armada", len(names), submit)

    def fluster(self, names: Sequence[str]) -> None:
        for name in names:
            sent = launch(name, f"#!/bin/sh\necho {name} >> {self._ledger}\n")

            def submit(sent: object = sent) -> None:
                try:
                    Connected(self._server)("LaunchJob", sent)  # type: ignore[arg-type] # a message
                except RefusedError as error:
                    if error.code != "unavailable":
                        raise
                    raise Unavailable from error

            self._until_answered("fluster", 1, submit)

    def _writes(self, name: str) -> list[str]:
        return ["sh", "-c", f"echo {name} >> {self._ledger}"]

    def _until_answered(self, door: str, count: int, submit: Callable[[], None]) -> None:
        def is_answered() -> bool:
            try:
                submit()
            except AWAY:
                return False
            return True

        wait_until(is_answered, f"an answer by the door {door}")
        self.accepted[door] += count


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_jobs_that_came_by_three_doors_over_kills_are_each_run_once(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    listening = {"HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0", "HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0"}
    environ = {"HOLDFAST_DOORS": "armada,fluster", "HOLDFAST_DOOR_ANONYMOUS": "ann", "HOLDFAST_CPUS": "8", **listening}
    if database == "postgresql":
        environ["HOLDFAST_DATABASE"] = request.getfixturevalue("postgres_url")
    server, ledger = DoorServer(tmp_path, **environ), tmp_path / "ledger"
    doors, began = Doors(server, ledger), time.monotonic()
    names = {door: [f"{door}-{number}" for number in range(JOBS // 3)] for door in ("native", "armada", "fluster")}
    try:
        with server.start() as client:
            client.put_settings({"access": {"admin": ["user:ann"]}})
        Gateway(server).ok("POST", "/v1/queue", {"name": "ml", "priorityFactor": 1})
        with ThreadPoolExecutor(3) as pool:
            submissions = [pool.submit(doors.submit_all, door, group) for door, group in names.items()]

            def are_accepted(count: int) -> bool:
                for submission in submissions:
                    if submission.done():
                        submission.result()
                return doors.accepted.total() >= count

            for number in range(KILLS):
                wait_until(partial(are_accepted, JOBS * number // (KILLS + 1)), "more jobs are accepted")
                server.end()
                server.start().close()
            for submission in submissions:
                submission.result()
        with server.client() as client:
            wait_until(
                lambda: Counter(job.state for job in client.jobs()) == {"Succeeded": len(names) * (JOBS // 3)},
                "every job has succeeded",
                within_s=600,
            )
    finally:
        server.clean_up()
    wrote = Counter(ledger.read_text().split())
    assert wrote == Counter(name for group in names.values() for name in group), "none is lost, and none ran twice"
    took_s = time.monotonic() - began
    print(f"{database}: {wrote.total()} jobs, {KILLS} kills, {took_s:.0f} s")  # noqa: T201 - shown with -s
