"""``holdfast events`` and ``holdfast get audit`` as people use them: with a server, without, and when it is killed."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import socket
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.e2e.commands import Piped
from tests.e2e.server import HOLDFAST, PATIENCE_S, Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

TRIVIAL = ["job.submitted", "job.started", "attempt.ended", "job.succeeded"]


class OnOnePort(Server):
    """A server whose address stays the same when it is started again, as people's do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.words = (*HOLDFAST, "up", "--port", str(free.getsockname()[1]))

    def follow(self, *words: str) -> Piped:
        """Start ``holdfast events -f``."""
        return Piped(("events", "-f", *words), self.environ)

    def say(self, *words: str) -> str:
        """Run a command and return what it printed."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OnOnePort]:
    made = OnOnePort(tmp_path)
    yield made
    made.clean_up()


def short(event: dict[str, Any]) -> str:
    return str(event["type"]).removeprefix("dev.holdfast.").removesuffix(".v1")


def without_statuses(events: list[dict[str, Any]]) -> list[str]:
    """Leave out what depends on how fast the machine is."""
    return [short(event) for event in events if short(event) not in {"attempt.status_changed", "job.waiting"}]


def test_a_follower_outlives_a_server_that_is_killed_and_prints_every_event_once(server: OnOnePort) -> None:
    server.start().close()
    with server.follow("-o", "json") as follower:
        server.say("run", "--name", "first", "--", "true")
        first = [json.loads(follower.stdout.readline())]
        while short(first[-1]) != "job.succeeded":
            first.append(json.loads(follower.stdout.readline()))
        server.end(signal.SIGKILL)
        server.start().close()
        server.say("run", "--name", "second", "--", "true")
        seen = [*first]
        while [short(event) for event in seen].count("job.succeeded") < 2:
            seen.append(json.loads(follower.stdout.readline()))
        follower.send_signal(signal.SIGINT)
        follower.wait(PATIENCE_S)
    assert without_statuses(seen) == TRIVIAL * 2
    assert seen == json.loads(server.say("events", "-o", "json"))["items"]


def test_following_a_job_ends_with_the_job(server: OnOnePort) -> None:
    server.start().close()
    server.say("run", "--detach", "--name", "twice", "--retries", "1", "--backoff", "0s", "--", "sh", "-c", "exit 3")
    with server.follow("--job", "twice", "-o", "json") as follower:
        out, _ = follower.communicate(timeout=PATIENCE_S)
    assert follower.returncode == 0
    events = [json.loads(line) for line in out.splitlines()]
    failed = ["job.started", "attempt.ended", "failure.decided"]
    assert without_statuses(events) == ["job.submitted", *failed, "job.retry_scheduled", *failed, "job.failed"]
    assert [event["jobsequence"] for event in events] == list(range(1, len(events) + 1))
    assert (events[-1]["data"]["exit_code"], events[-1]["data"]["final"]) == (3, True)


@pytest.mark.slow
def test_without_a_server_the_past_is_read_from_the_data_directory(server: OnOnePort) -> None:
    server.say("run", "--name", "alone", "--", "true")
    table = server.say("events", "--job", "alone", "-f")
    assert table.splitlines()[0].split() == ["ID", "TIME", "SUBJECT", "EVENT", "WHAT"]
    assert "job/alone" in table
    assert "job.succeeded" in table.splitlines()[-1]
    assert server.say("events", "--type", "job.succeeded,policy", "-o", "name").count("\n") == 1
    assert server.say("events", "--after", "now", "-o", "json").split() == ["{", '"items":', "[]", "}"]
    assert len(server.say("events", "--limit", "2", "-o", "name").split()) == 2


def test_the_audit_log_says_who_did_what_and_no_secret(server: OnOnePort) -> None:
    server.start().close()
    server.say("run", "--detach", "--name", "quiet", "--env", "PASSWORD=hunter2", "--", "sleep", "60")
    server.say("create", "queue", "gpu", "--weight", "2")
    wait_until(lambda: "Running" in server.say("get", "job", "quiet"), "a job that runs")
    server.say("cancel", "quiet", "--reason", "enough")
    server.say("delete", "queue", "gpu")
    refused = server.run("delete", "queue", "default")
    assert refused.returncode != 0
    me = pwd.getpwuid(os.geteuid()).pw_name
    text = server.say("get", "audit", "-o", "json")
    entries = json.loads(text)["items"]
    assert [(entry["action"], entry["kind"], entry["outcome"]) for entry in entries] == [
        ("create", "job", "accepted"),
        ("create", "queue", "accepted"),
        ("cancel", "job", "accepted"),
        ("delete", "queue", "accepted"),
        ("delete", "queue", "conflict"),
    ]
    assert {(entry["actor"], entry["origin"]) for entry in entries} == {(me, "127.0.0.1")}
    assert len({entry["request_id"] for entry in entries}) == 5
    assert [entries[0]["detail"], entries[2]["detail"]] == ["1 job", "enough"]
    assert "hunter2" not in text + server.say("events", "-o", "json")
    assert re.search(rf"\b{me}  +cancel", server.say("get", "audit"))


def test_a_follower_for_whom_there_is_no_room_says_so_once_and_goes_on_when_there_is(tmp_path: Path) -> None:
    server = Server(tmp_path, HOLDFAST_STREAMS="1")
    try:
        with server.start() as client, server.client() as other:
            client.submit({"name": "first", "command": ["true"]})
            holds = cast("Generator[object]", other.events(follow=True))
            next(holds)
            words = ("events", "-f", "-o", "json", "--type", "job.submitted")
            with Piped(words, server.environ) as follower:
                assert follower.stderr.readline() == (
                    "no events are followed for now: 1 clients follow events already\n"
                )
                holds.close()
                assert short(json.loads(follower.stdout.readline())) == "job.submitted"
                assert follower.stderr.readline() == "events are followed again\n"
                follower.send_signal(signal.SIGINT)
                assert follower.stderr.read() == "interrupted\n"
    finally:
        server.clean_up()
