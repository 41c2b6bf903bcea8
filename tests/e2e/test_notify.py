"""People are told of what becomes of jobs, by a real server to a real receiver, whatever is killed in between."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from standardwebhooks import Webhook

from tests.e2e.server import wait_until
from tests.e2e.test_cli_arrays import Shell
from tests.integration.notify.conftest import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIGNING = "whsec_" + base64.b64encode(b"k" * 32).decode()
FAILS = ("sh", "-c", 'echo "ValueError: no such key" >&2; exit 3')


def manifest(name: str, spec: dict[str, object]) -> str:
    return json.dumps({"apiVersion": "holdfast.dev/v1", "kind": "Notifier", "metadata": {"name": name}, "spec": spec})


class NotifyShell(Shell):
    """A shell whose jobs may tell a receiver."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        super().__init__(folder)
        self.receiver = receiver
        page = folder / "page"
        page.write_text(f"#!/bin/sh\ncat > {folder}/paged-$HOLDFAST_NOTIFY_ID\n")
        page.chmod(0o700)
        (self.data / "secrets").mkdir(parents=True)
        (self.data / "secrets" / "hook").write_text(f"{receiver.url}/file\n")
        self.environ = {
            **self.environ,
            "HOLDFAST_NOTIFY_ALLOW": "127.0.0.1",
            "HOLDFAST_NOTIFY_COMMANDS": str(page),
            "HOLDFAST_SECRET_OPS": SIGNING,
        }
        specs: dict[str, dict[str, object]] = {
            "ops": {"type": "webhook", "url": f"{receiver.url}/gate", "secret": {"env": "HOLDFAST_SECRET_OPS"}},
            "page": {"type": "command", "command": [str(page)]},
            "secret": {"type": "slack", "url": {"file": "hook"}},
            "broken": {"type": "webhook", "url": f"{receiver.url}/500"},
            "moved": {"type": "webhook", "url": f"{receiver.url}/302"},
        }
        done = self.run("apply", "-f", "-", text="\n".join(manifest(name, spec) for name, spec in specs.items()))
        assert done.returncode == 0, done.stderr

    def told(self) -> Counter[str]:
        """Count what the receiver was told, by the name of the job."""
        return Counter(json.loads(got.body)["data"]["name"] for got in self.receiver.received)

    def paged(self) -> list[str]:
        return [json.loads(path.read_text())["data"]["name"] for path in self.folder.glob("paged-*")]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[NotifyShell]:
    receiver = Receiver()
    shell = NotifyShell(tmp_path, receiver)
    yield shell
    shell.clean_up()
    receiver.close()


def test_whatever_is_killed_everybody_is_told_and_repetitions_have_the_same_id(shell: NotifyShell) -> None:
    with shell.start() as client:
        for name in "abc":  # two are on their way when the server dies, and nobody has begun to tell of the third
            notify = [{"to": "ops", "on": "failure"}, "page"]
            client.submit({"name": name, "command": [*FAILS], "notify": notify})
        wait_until(lambda: len(shell.receiver.received) == 2, "two on their way")
        wait_until(lambda: len(list(client.notifications(state="Delivered"))) == 3, "the others are told meanwhile")
        assert sorted(shell.paged()) == ["a", "b", "c"]
    shell.end()
    shell.receiver.open.set()
    with shell.start() as client:
        wait_until(lambda: len(list(client.notifications(state="Delivered"))) == 6, "all delivered")
        assert 'holdfast_notifications_total{outcome="delivered"}' in client.metrics()
    assert sorted(shell.told().values()) == [1, 2, 2]
    ids = Counter(got.headers["webhook-id"] for got in shell.receiver.received)
    assert sorted(ids.values()) == [1, 2, 2]
    for got in shell.receiver.received:
        headers = {name.lower(): text for name, text in got.headers.items()}
        told = Webhook(SIGNING).verify(got.body.decode(), headers)["data"]
        assert told["failure"] == "exit code 3: ValueError: no such key"


def test_without_a_server_the_command_tells_before_it_ends_or_says_what_is_left(shell: NotifyShell) -> None:
    shell.receiver.open.set()
    ended = shell.run("run", "--name", "solo", "--notify", "ops", "--notify", "broken", "--", *FAILS)
    assert ended.returncode == 3
    assert "1 notification is not delivered yet; a server, or the next command" in ended.stderr
    found = {one["to"]: one for one in shell.json("notify", "list")["items"]}
    assert {to: one["state"] for to, one in found.items()} == {"ops": "Delivered", "broken": "Waiting"}
    assert found["broken"]["error"].startswith("the server answered 500: no")
    shown = shell.run("notify", "show", found["ops"]["id"]).stdout
    assert "summary: 'job solo failed: exit code 3: ValueError: no such key'" in shown
    assert shell.run("notify", "replay", found["ops"]["id"]).returncode == 0
    assert shell.run("run", "true").returncode == 0
    assert Counter(got.headers["webhook-id"] for got in shell.receiver.received)[found["ops"]["id"]] == 2


@pytest.mark.slow
def test_a_test_says_whether_a_notifier_works_and_what_cannot_be_used_is_refused(shell: NotifyShell) -> None:
    shell.receiver.open.set()
    tested = shell.run("notify", "test", "ops", "page", "secret", "moved")
    assert tested.returncode == 1
    assert [line.split(" accepted")[0] for line in tested.stdout.splitlines()] == [
        "notifier ops", "notifier page", "notifier secret",
    ]  # fmt: skip
    assert "notifier moved: the server answered 302; redirects are not followed" in tested.stderr
    assert shell.receiver.received[1].path == "/file"
    shown = shell.run("get", "notifiers", "-o", "yaml").stdout
    assert "k" * 8 not in shown
    assert "/file" not in shown
    refused = shell.run(
        "create", "-f", "-", text=manifest("rm", {"type": "command", "command": ["/bin/rm", "-rf", "/"]})
    )
    assert "spec.command[0] (line 1): '/bin/rm' is not allowed here" in refused.stderr
    wrong: list[object] = [{"to": "opss"}, {"to": "ops", "on": "fail"}, "http://x/"]
    jobs = [json.dumps({"name": "a", "command": ["true"], "notify": each}) for each in wrong]
    found = shell.run("submit", "-f", "-", text="\n".join(jobs)).stderr
    assert all(said in found for said in ("'opss' does not exist", "'fail' is not an event", "not a URL"))
    audit = [(one["action"], one["kind"], one["name"]) for one in shell.json("get", "audit")["items"]]
    assert ("test", "notifier", "ops") in audit
    deleted = shell.run("delete", "notifier", "secret", "rm")
    assert (deleted.stdout, "rm" in deleted.stderr) == ("notifier secret deleted\n", True)
