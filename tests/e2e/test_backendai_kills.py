"""A server that is killed again and again starts each session of a chain once, and leaves none out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.backendai_stage import BackendAiServer, door
from tests.e2e.server import wait_until
from tests.e2e.test_backendai_sessions import body, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["door"]
RETRIES = 3
KILLED_AT = (1, 4, 7, 10)
"""How many sessions have started when the server is killed."""


@pytest.mark.slow  # four servers
def test_a_server_that_is_killed_starts_each_session_once(door: BackendAiServer, tmp_path: Path) -> None:
    policy = {"max_retries": RETRIES, "retry_delay": 0.5, "jitter": "none"}
    keys = []
    for number in range(3):
        command = f"echo $BACKENDAI_SESSION_ID >> {tmp_path}/started-{number}; sleep 0.{number}; exit 3"
        answer = door.call("POST", "/v2/sessions", body(f"killed-{number}", command, retry_policy=policy))
        keys.append(answer.json()["session"]["id"])

    def started() -> int:
        return sum(len(path.read_text().split()) for path in tmp_path.glob("started-*"))

    for count in KILLED_AT:
        wait_until(partial(is_at_least, started, count), f"{count} sessions")
        door.end()
        door.start()
    for number, key in enumerate(keys):
        wait_until(partial(is_exhausted, door, key), "the last session of the chain")
        assert (tmp_path / f"started-{number}").read_text().split() == read(door, key)["retry_chain"]


def is_at_least(counted: Callable[[], int], count: int) -> bool:
    return counted() >= count


def is_exhausted(door: BackendAiServer, key: str) -> bool:
    """Whether the last session that the chain may have has failed."""
    chain = read(door, key)["retry_chain"]
    return len(chain) == 1 + RETRIES and read(door, chain[-1])["retry_state"]["state"] == "exhausted"
