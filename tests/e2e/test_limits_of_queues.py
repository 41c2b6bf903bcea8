"""Two people with tokens of their own share a queue that limits what each of them has in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.app.data.datadir import DataDir
from tests.e2e.armada_stage import DoorServer, door
from tests.e2e.test_cli_shell import Shell, served, shell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["door", "served", "shell"]


@pytest.fixture
def person(served: Shell) -> Callable[[str], Shell]:
    """Give somebody a token, and return what commands with it do."""
    assert served.run("update", "settings", "--access", "user=user:lab:ann,user:lab:bob,user:lab:eve").code == 0
    server = DataDir(served.folder / "data").server()
    assert server is not None

    def made(name: str) -> Shell:
        said = served.run("token", "create", name, "--user", f"lab:{name}", "-o", "json")
        assert said.code == 0, said.err
        token = json.loads(said.out)["token"]
        return Shell(
            served.folder, {"HOLDFAST_URL": server.url, "HOLDFAST_TOKEN": token, "HOLDFAST_DATA": "/nonexistent"}
        )

    return made


def _submit(who: Shell, name: str, **fields: object) -> str:
    """Submit a job or an array that lasts; returns its id."""
    manifest = {"name": name, "queue": "shared", "command": ["sleep", "100"], "resources": {"cpu": 0.1}, **fields}
    (who.folder / f"{name}.yaml").write_text(json.dumps(manifest))
    said = who.run("submit", "-f", f"{name}.yaml")
    assert said.code == 0, said.err
    return said.out.split()[0]


@pytest.mark.slow
def test_one_users_jobs_wait_at_the_limit_while_anothers_run(served: Shell, person: Callable[[str], Shell]) -> None:
    ann, bob = person("ann"), person("bob")
    flags = ("--per-user", "maxRunningJobs=1", "--per-user", "maxRunning.cpu=1")
    assert served.run("create", "queue", "shared", *flags).code == 0
    first, second, other = _submit(ann, "a1"), _submit(ann, "a2"), _submit(bob, "b1")
    assert served.run("wait", other, "--for", "Running", "--timeout", "20s").code == 0
    assert served.run("wait", first, "--for", "Running", "--timeout", "20s").code == 0
    reason = "lab:ann is at the per-user limit of 1 running jobs of queue shared"
    assert reason in ann.run("why", second).out
    _submit(bob, "sweep", array={"indices": "0-3"})
    assert served.run("cancel", first).code == 0
    assert served.run("wait", second, "--for", "Running", "--timeout", "20s").code == 0
    assert "lab:bob is at the per-user limit" in bob.run("why", "sweep-0").out
    assert ann.run("update", "queue", "shared", "--per-user", "maxRunningJobs=9").code == 4
    assert served.run("update", "queue", "shared", "--per-user", "maxRunningJobs=none").code == 0
    assert json.loads(served.run("get", "queue", "shared", "-o", "json").out)["spec"]["perUser"] == {
        "maxRunning": {"cpu": "1000m"}
    }
    assert served.run("wait", "sweep-0", "--for", "Running", "--timeout", "20s").code == 0
    served.run("cancel", "--queue", "shared")


def test_more_than_may_wait_or_a_minute_has_is_refused_on_the_command_line(
    served: Shell, person: Callable[[str], Shell]
) -> None:
    eve = person("eve")
    said = served.run("create", "queue", "full", "--max-queued", "3", "--submissions-per-minute", "9", "--paused")
    assert said.code == 0, said.err
    assert served.run("update", "queue", "full", "--per-user", "submissionsPerMinute=2").code == 0
    (eve.folder / "sweep.yaml").write_text(
        json.dumps({"name": "large", "queue": "full", "command": ["true"], "array": {"indices": "0-3"}})
    )
    refused = eve.run("submit", "-f", "sweep.yaml")
    assert (refused.code, "queue full lets at most 3 jobs wait: 0 wait, and this adds 4" in refused.err) == (4, True)
    for name in ("a1", "a2"):
        _submit(eve, name, queue="full")
    (eve.folder / "a3.yaml").write_text(json.dumps({"name": "a3", "queue": "full", "command": ["true"]}))
    refused = eve.run("submit", "-f", "a3.yaml")
    words = "queue full accepts 2 submissions of lab:eve a minute: 2 were accepted in the last minute, and this adds 1"
    assert (refused.code, words in refused.err) == (4, True), refused.err
    assert served.run("update", "queue", "full", "--submissions-per-minute", "none").code == 0
    spec = json.loads(served.run("get", "queue", "full", "-o", "json").out)["spec"]
    assert (spec["maxQueued"], "submissionsPerMinute" in spec) == (3, False)
    served.run("cancel", "--queue", "full")


def test_armadas_client_is_told_that_a_queue_is_full_as_upstream_does(door: DoorServer) -> None:
    stock = door.open()
    with door.client() as client:
        spec = {"maxQueued": 1, "paused": True}
        client.queues.put(
            "ml", {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "ml"}, "spec": spec}
        )
    found = stock(
        """
        first = submitted("ml", "s", item("true"))
        bulk = refused(lambda: submitted("ml", "s", item("true"), item("true")))
        done([len(first), bulk])
        """
    )
    assert found[0] == 1
    code, sentence = found[1]
    assert code == "RESOURCE_EXHAUSTED"
    assert "queue ml lets at most 1 jobs wait: 1 wait, and this adds 2" in sentence
