"""Whoever waits for work or follows it goes on when the server is killed and started again meanwhile."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast.errors import Unavailable
from tests.e2e.commands import Piped
from tests.e2e.server import PATIENCE_S, Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AWAY, BACK = "the server does not answer; waiting up to 5m for it", "the server answers again"


class Restarted:
    """A server, a job that goes on once it is told to, and those who wait for it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.gate = folder / "gate"
        self.script = f"echo first; while [ ! -e {self.gate} ]; do sleep 0.05; done; echo second; exit 3"
        self.commands: list[Piped] = []

    def begin(self, *words: str) -> Piped:
        self.commands.append(Piped(words, self.server.environ))
        return self.commands[-1]

    def restart(
        self,
        *commands: Piped,
        noticed: Callable[[], object] = lambda: True,
        number: int = signal.SIGKILL,
    ) -> None:
        """End the server, start another one once it is missed, and let the job go on."""
        self.server.end(number)
        for command in commands:
            assert AWAY in command.stderr.readline()
        wait_until(noticed, "somebody who misses the server")
        self.server.start().close()
        self.gate.touch()


@pytest.fixture
def restarted(server: Server, tmp_path: Path) -> Iterator[Restarted]:
    server.start().close()
    made = Restarted(server, tmp_path)
    yield made
    for command in made.commands:
        command.close()


def submitted(restarted: Restarted) -> str:
    with restarted.server.client() as client:
        job = client.submit({"name": "one", "shell": restarted.script}).id
        until(client, job, lambda view: view.state == "Running")
        wait_until(lambda: client.logs(job).text == "first\n", "a log")
    return job


def first_line(command: Piped) -> str:
    return command.stdout.readline()


def test_commands_that_wait_or_follow_outlive_a_killed_server(restarted: Restarted) -> None:
    job = submitted(restarted)
    follow, wait = restarted.begin("logs", "-f", job), restarted.begin("wait", job)
    run = restarted.begin("run", "--", "sh", "-c", restarted.script)
    assert [first_line(follow), first_line(run)] == ["first\n", "first\n"]
    wait_until(lambda: restarted.server.has_answered("/jobs/states"), "a command that waits")
    restarted.restart(follow, wait, run)
    ended = {one: one.communicate(timeout=PATIENCE_S) for one in (follow, wait, run)}
    assert [one.returncode for one in (follow, wait, run)] == [0, 1, 3], ended
    assert [ended[one][0] for one in (follow, run)] == ["second\n", "second\n"], "nothing twice, and nothing lost"
    for _, err in ended.values():
        assert (err.count(BACK), err.count(AWAY)) == (1, 0), "each is said once"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_submits_or_deletes_and_waits_outlives_a_server_that_ends(restarted: Restarted, number: int) -> None:
    trapping = f"trap '' TERM; {restarted.script}"
    template: dict[str, Any] = {"spec": {"containers": [{"name": "main", "command": ["sh", "-c", trapping]}]}}
    template["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 600}
    group = {"name": "only", "template": {"spec": {"template": template}}}
    with restarted.server.client() as client:
        client.create_job_set(
            {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set"}}
            | {"spec": {"replicatedJobs": [group]}}
        )
        until(client, "set-only-0", lambda view: view.state == "Running")
        wait_until(lambda: client.logs("set-only-0").text == "first\n", "a program that ignores SIGTERM")
    manifest = restarted.gate.with_name("two.json")
    manifest.write_text(json.dumps({"name": "two", "shell": restarted.script}))
    submit = restarted.begin("submit", "--wait", "-f", str(manifest))
    delete = restarted.begin("delete", "jobset", "set", "--wait")
    with restarted.server.client() as client:
        wait_until(lambda: [*client.jobs(name="two", states=["Running"])], "a job that was submitted")
        wait_until(lambda: client.job_set("set").deleting, "a set that goes")
    restarted.restart(submit, delete, number=number)
    ended = {one: one.communicate(timeout=PATIENCE_S) for one in (submit, delete)}
    assert [one.returncode for one in (submit, delete)] == [1, 0], ended
    assert {(err.count(BACK), err.count(AWAY)) for _, err in ended.values()} == {(1, 0)}, ended


def test_following_events_ends_when_the_token_that_was_given_is_refused(restarted: Restarted) -> None:
    submitted(restarted)
    address, server = restarted.server.address(), restarted.server
    server.environ = {**server.environ, "HOLDFAST_URL": str(address["url"]), "HOLDFAST_TOKEN": str(address["token"])}
    follow = restarted.begin("events", "-f")
    assert first_line(follow) != "", "it follows"
    server.end()
    server.environ = {**server.environ, "HOLDFAST_TOKEN": "another"}
    server.words = (*server.words[:-1], str(address["url"]).rpartition(":")[2])
    server.start().close()
    _, err = follow.communicate(timeout=PATIENCE_S)
    assert follow.returncode == 4, err


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True], ids=["result", "result of the asynchronous client"])
def test_results_in_python_outlive_a_killed_server(
    restarted: Restarted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, asynchronous: bool
) -> None:
    job = submitted(restarted)
    monkeypatch.setenv("HOLDFAST_DATA", str(restarted.server.data))
    asked = ThreadPoolExecutor(1).submit(lambda: asyncio.run(awaited(job)) if asynchronous else waited(job))
    wait_until(lambda: restarted.server.has_answered("/jobs/states"), "a client that waits")
    with caplog.at_level(logging.WARNING):
        restarted.restart(noticed=lambda: AWAY in caplog.text)
        with pytest.raises(holdfast.JobFailed):
            asked.result(PATIENCE_S)
    assert (caplog.text.count(AWAY), caplog.text.count(BACK)) == (1, 1)


def waited(job: str) -> object:
    with holdfast.Client.from_env() as client:
        return client.job(job).result()


async def awaited(job: str) -> object:
    async with await holdfast.AsyncClient.from_env() as client:
        return await (await client.job(job)).result()


@pytest.mark.slow
def test_patience_has_an_end_and_a_server_that_never_answered_gets_none(restarted: Restarted) -> None:
    job = submitted(restarted)
    restarted.server.environ = {**restarted.server.environ, "HOLDFAST_PATIENCE": "500ms"}
    follow = restarted.begin("logs", "-f", job)
    assert first_line(follow) == "first\n"
    restarted.server.end()
    _, err = follow.communicate(timeout=PATIENCE_S)
    assert (follow.returncode, "waiting up to 500ms for it" in err) == (5, True), err
    restarted.server.environ = {
        **restarted.server.environ,
        "HOLDFAST_PATIENCE": "1h",
        "HOLDFAST_URL": "http://127.0.0.1:1",
    }
    assert restarted.server.run("wait", job).returncode == 5
    with pytest.raises(Unavailable), holdfast.Client("http://127.0.0.1:1") as client:
        client.job(job)
