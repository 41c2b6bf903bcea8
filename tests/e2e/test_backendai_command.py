"""``holdfast bai`` on a server with Backend.AI's door."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.e2e.backendai_stage import BackendAiServer, door
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

__all__ = ["door"]
NOBODY = "00000000-0000-5000-8000-000000000000"


def bai(server: BackendAiServer, *words: str) -> str:
    """Run ``holdfast bai session``, and return what it prints."""
    done = server.run("bai", "session", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(server: BackendAiServer, key: str) -> Mapping[str, Any]:
    """Read a session."""
    session: Mapping[str, Any] = json.loads(bai(server, "get", key))
    return session


def test_a_failing_session_is_enqueued_and_followed_through_its_retries(door: BackendAiServer) -> None:
    words = ("--name", "train", "--env", "WORD=hi", "--cpu", "0.1", "--mem", "64Mi", "--tag", "t")
    policy = ("--retries", "2", "--retry-delay", "0.01", "--retry-policy", '{"jitter": "none"}')
    key = bai(door, "enqueue", *words, *policy, "--", "echo $WORD; exit 3").strip()
    wait_until(lambda: len(get(door, key)["retry_chain"]) == 3, "three sessions")
    _, second, third = get(door, key)["retry_chain"]
    wait_until(lambda: get(door, third)["retry_state"]["state"] == "exhausted", "the end of the chain")
    told = bai(door, "info", second)
    for line in (
        rf"Session: +train \({second}\)",
        "Status: +TERMINATED",
        "Result: +failure",
        "Cause: +kernel_nonzero_exit",
        rf"Retry: +attempt 2 of 3, retried as {third}",
        f"Parent: +{key}",
        "Tag: +t",
    ):
        assert re.search(f"^{line}", told, re.MULTILINE), told
    assert "attempt 3 of 3, no retries are left" in bai(door, "info", third)
    rows = bai(door, "attempts", second).splitlines()
    assert [row.split()[:5] for row in rows[1:]] == [
        [str(number), member, "TERMINATED", "failure", "3"] for number, member in enumerate((key, second, third), 1)
    ]
    assert bai(door, "logs", third) == "hi\n"
    assert re.search(r"RUNNING +\S+ +", bai(door, "history", third))
    assert third not in bai(door, "history", third, "--kernels")
    assert bai(door, "search", "--status", "terminated", "--name", "rai", "--limit", "2", "-o", "name") == (
        f"{third}\n{second}\n"
    )


def test_a_session_that_asks_for_no_retries_is_the_only_attempt(door: BackendAiServer) -> None:
    """RK-002."""
    key = bai(door, "enqueue", "--name", "lone", "--", "true").strip()
    wait_until(lambda: get(door, key)["lifecycle"]["status"] == "TERMINATED", "its end")
    told = bai(door, "info", key)
    assert not re.search(r"attempt (?!1 of 1)", told), told


def test_sessions_are_ended_by_command_and_what_is_wrong_is_said(door: BackendAiServer) -> None:
    held = bai(door, "enqueue", "--interactive", "--name", "place").strip()
    later = bai(door, "enqueue", "--depends", held, "--", "true").strip()
    wait_until(lambda: get(door, held)["lifecycle"]["status"] == "RUNNING", "the session runs")
    assert "attempt 1 of 1\n" in bai(door, "info", held)
    taken = door.run("bai", "session", "enqueue", "--name", "place", "--", "true")
    assert (taken.returncode, "'place'" in taken.stderr) == (4, True), taken.stderr
    ended = bai(door, "terminate", later, held, NOBODY)
    assert ended == f"{later} cancelled\n{held} terminating\n{NOBODY} skipped\n"
    missing = door.run("bai", "session", "info", NOBODY)
    assert (missing.returncode, missing.stdout, NOBODY in missing.stderr) == (3, "", True), missing.stderr
    wrong = door.run("bai", "session", "enqueue", "--causes", "weather", "--", "true")
    assert (wrong.returncode, "retry_policy.eligible_causes" in wrong.stderr) == (2, True), wrong.stderr
    nowhere = door.run("bai", "session", "enqueue", "--project", "moon", "--", "true")
    assert (nowhere.returncode, "no project 'moon'" in nowhere.stderr) == (3, True), nowhere.stderr


def test_the_script_bai_is_the_command_bai(tmp_path: Path) -> None:
    script = "import sys; from holdfast.cli.main import main; sys.argv[0] = '/usr/bin/bai'; main()"
    words = (sys.executable, "-c", script, "session", "info", NOBODY)
    environ = {**os.environ, "HOLDFAST_DATA": str(tmp_path)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "--door backendai" in done.stderr) == (5, True), done.stderr
