"""A kind of work that Holdfast does not have is written, shown, waited for, explained and deleted like any other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.client import Client
from holdfast.errors import Forbidden, InvalidManifest
from holdfast.wire.jobs import OwnerView
from tests.e2e.server import PATIENCE_S, Server, wait_until
from tests.kinds.rollout.words import ROLLOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "import time; print('up', flush=True); time.sleep(600)"
HOLDFAST = (sys.executable, "-m", "tests.kinds.rollout")


def manifest(replicas: int, program: str = PROGRAM) -> str:
    return f"""
apiVersion: holdfast.dev/v1
kind: Rollout
metadata:
  name: web
spec:
  replicas: {replicas}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: python
          command: [{sys.executable}, -c, "{program}"]
"""


class RolloutServer(Server):
    """A server that has rollouts, too, and commands that know of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PYTHONPATH=str(Path(__file__).parents[2]))
        self.words = (*HOLDFAST, "up", "--port", "0")

    def run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HOLDFAST, *words],
            env=self.environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def said(self, *words: str, text: str = "") -> str:
        """Run a command that must do."""
        ended = self.run(*words, text=text)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def rollouts(tmp_path: Path) -> Iterator[RolloutServer]:
    server = RolloutServer(tmp_path)
    server.start().close()
    yield server
    server.clean_up()


@pytest.mark.slow
def test_it_is_applied_shown_waited_for_explained_changed_and_deleted_by_commands(rollouts: RolloutServer) -> None:
    with rollouts.client() as client:
        assert rollouts.said("apply", "-f", "-", text=manifest(2)) == "rollout web created\n"
        assert rollouts.said("wait", "rollout", "web", "--for", "Available", "--timeout", "50s") == ""
        assert rollouts.said("get", "rollouts").split()[:6] == ["NAME", "STATE", "AGE", "REASON", "web", "Available"]
        assert rollouts.said("why", "rollout", "web").startswith("Rollout web is Available: 2 of 2 replicas run.\n")
        shown = rollouts.said("describe", "rollout/web")
        assert ("replicas: 2" in shown, "state: Available" in shown) == (True, True)
        first_id = rollouts.json("get", "rollout", "web")["id"]
        assert rollouts.json("get", "rollout", "web")["replicas"] == 2
        assert rollouts.said("get", "rollouts", "-o", "name") == "rollout/web\n"
        assert rollouts.said("get", "rollouts", "-o", "custom-columns=N:.replicas").split() == ["N", "2"]
        assert "It is part of rollout web. For all of it: holdfast why rollout web" in rollouts.said("why", "web-1-0")
        assert "Rollout: web, replica, index 0 " in " ".join(rollouts.said("describe", "web-1-0").split())
        assert client.job("web-1-0").owner == OwnerView(kind="rollout", id=first_id, name="web")
        refused = rollouts.run("hold", "web-1-0").stderr
        assert "belongs to a rollout, which starts and stops it: it cannot be held" in refused
        assert "cancel, suspend, resume or delete its rollout instead" in refused
        assert rollouts.run("cancel", "web-1-0").returncode == 4
        assert rollouts.said("get", "rollouts", "--state", "Progressing", "-o", "name") == ""
        written = rollouts.said("get", "rollout", "web", "-o", "yaml")
        assert rollouts.said("apply", "-f", "-", text=written) == "rollout web unchanged\n"
        first = {job.id for job in client.jobs(states=["Running"])}
        assert len(first) == 2

        assert rollouts.said("apply", "-f", "-", text=manifest(1, f"{PROGRAM} # new")) == "rollout web updated\n"
        wait_until(
            lambda: {job.name for job in client.jobs(states=["Running"])} == {"web-2-0"}, "one of the new generation"
        )
        assert len(rollouts.programs()) == 1

        assert rollouts.said("delete", "rollout", "web") == "rollout web deletion requested\n"
        wait_until(lambda: not list(client.of(ROLLOUT).list()), "a rollout that is gone")
        assert {job.state for job in client.jobs()} == {"Cancelled"}
        assert rollouts.programs() == []
        told = [(entry.action, entry.kind, entry.outcome) for entry in client.audit() if entry.kind == "rollout"]
        assert told == [
            ("create", "rollout", "accepted"),
            ("update", "rollout", "accepted"),
            ("delete", "rollout", "accepted"),
        ]


def test_what_is_wrong_with_one_is_said_with_the_line_of_the_file(rollouts: RolloutServer) -> None:
    with rollouts.client() as client:
        refused = rollouts.run("apply", "-f", "-", text=manifest(2).replace("replicas: 2", "replicas: many\n  odd: 1"))
        assert refused.returncode == 2
        assert "standard input: spec.replicas (line 7)" in refused.stderr
        assert "standard input: spec.odd (line 8)" in refused.stderr
        assert rollouts.run("get", "rollout", "web").returncode == 3
        assert "has no events of its own; its jobs have" in rollouts.run("events", "rollout/web").stderr
        odd = rollouts.run("get", "rollouts", "--state", "Odd").stderr
        assert "allowed: Progressing, Available, Suspended, Deleting" in odd
        with pytest.raises(InvalidManifest):
            client.of(ROLLOUT).create({"kind": "Rollout"})


@pytest.mark.slow
def test_a_dry_run_checks_it_with_what_waits_for_it_and_stores_nothing(rollouts: RolloutServer) -> None:
    waits = "---\nname: next\ncommand: ['true']\ndependsOn: [rollout/web]\n"
    assert rollouts.said("apply", "--dry-run", "-f", "-", text=f"{waits}---{manifest(2)}").count("kind: Rollout") == 1
    refused = rollouts.run("submit", "--dry-run", "-f", "-", text=manifest(2).replace("replicas: 2", "replicas: many"))
    assert refused.returncode == 2
    assert "standard input: spec.replicas (line 7)" in refused.stderr
    assert rollouts.run("get", "rollout", "web").returncode == 3
    assert rollouts.said("submit", "-f", "-", "-o", "name", text=manifest(0) + waits).startswith("rollout/web\njob/")
    again = rollouts.run("create", "--dry-run", "-f", "-", text=manifest(2))
    assert (again.returncode, "rollout 'web' exists already" in again.stderr) == (4, True)


@pytest.mark.slow
def test_what_its_description_says_can_be_asked_of_it_by_commands(rollouts: RolloutServer) -> None:
    rollouts.said("submit", "-f", "-", "--wait", "--timeout", "50s", text=manifest(1))
    assert rollouts.said("suspend", "rollout/web") == "rollout web suspend requested\n"
    wait_until(lambda: rollouts.programs() == [], "a rollout of which nothing runs")
    assert rollouts.json("get", "rollout", "web")["manifest"]["spec"]["suspend"] is True
    assert "holdfast resume rollout web" in rollouts.run("wait", "rollout", "web", "--timeout", "1s").stderr
    assert rollouts.said("resume", "rollout", "web") == "rollout web resume requested\n"
    assert rollouts.said("wait", "rollout", "web", "--for", "Available", "--timeout", "50s") == ""
    refused = rollouts.run("hold", "rollout/web")
    assert (refused.returncode, "`hold` is for jobs and arrays." in refused.stderr) == (2, True)
    assert rollouts.run("restart", "rollout", "web").returncode == 2
    assert rollouts.run("cancel", "array/web", "other").returncode == 3
    assert rollouts.said("cancel", "web").endswith(" web cancel requested\n")
    with rollouts.client() as client:
        wait_until(lambda: not list(client.of(ROLLOUT).list()), "a rollout that is gone")
        told = [entry.action for entry in client.audit() if entry.kind == "rollout" and entry.outcome == "accepted"]
    assert told == ["create", "suspend", "resume", "cancel"]


@pytest.mark.slow
def test_it_goes_on_where_it_was_when_the_server_is_killed(rollouts: RolloutServer) -> None:
    said = rollouts.said("submit", "-f", "-", "-o", "name", "--wait", "--timeout", "50s", text=manifest(2))
    assert said == "rollout/web\n"
    before = {program.pid for program in rollouts.programs()}
    rollouts.end()
    rollouts.start().close()
    with rollouts.client() as client:
        assert client.of(ROLLOUT).get("web").state == "Available"
        assert {program.pid for program in rollouts.programs()} == before


def test_a_token_for_rollouts_alone_is_for_nothing_else(rollouts: RolloutServer) -> None:
    rollouts.said("apply", "-f", "-", text=manifest(0))
    made = json.loads(rollouts.said("token", "create", "deployer", "--scope", "watch@rollout", "-o", "json"))
    with Client(str(rollouts.address()["url"]), made["token"]) as scoped:
        assert scoped.of(ROLLOUT).get("web").name == "web"
        with pytest.raises(Forbidden, match="may not cancel rollouts with this token: its scope is watch@rollout"):
            scoped.of(ROLLOUT).delete("web")
        with pytest.raises(Forbidden):
            list(scoped.jobs())
