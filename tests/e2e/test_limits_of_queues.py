"""Two people with tokens of their own share a queue that limits what each of them has in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.app.data.datadir import DataDir
from tests.e2e.test_cli_shell import Shell, served, shell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["served", "shell"]


@pytest.fixture
def person(served: Shell) -> Callable[[str], Shell]:
    """Give somebody a token, and return what commands with it do."""
    assert served.run("update", "settings", "--access", "user=user:lab:ann,user:lab:bob").code == 0
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


def test_one_users_jobs_wait_at_the_limit_while_anothers_run(served: Shell, person: Callable[[str], Shell]) -> None:
    ann, bob = person("ann"), person("bob")
    flags = ("--per-user", "maxRunningJobs=1", "--per-user", "maxRunning.cpu=1")
    assert served.run("create", "queue", "shared", *flags).code == 0
    first, second, other = _submit(ann, "a1"), _submit(ann, "a2"), _submit(bob, "b1")
    assert served.run("wait", other, "--for", "Running", "--timeout", "20s").code == 0
    assert served.run("wait", first, "--for", "Running", "--timeout", "20s").code == 0
    reason = "lab:ann is at the limit of 1 running jobs of each user in queue shared"
    assert reason in ann.run("why", second).out
    _submit(bob, "sweep", array={"indices": "0-3"})
    assert served.run("cancel", first).code == 0
    assert served.run("wait", second, "--for", "Running", "--timeout", "20s").code == 0
    assert "lab:bob is at the limit" in bob.run("why", "sweep-0").out
    assert ann.run("update", "queue", "shared", "--per-user", "maxRunningJobs=9").code == 4
    assert served.run("update", "queue", "shared", "--per-user", "maxRunningJobs=none").code == 0
    assert json.loads(served.run("get", "queue", "shared", "-o", "json").out)["spec"]["perUser"] == {
        "maxRunning": {"cpu": "1000m"}
    }
    assert served.run("wait", "sweep-0", "--for", "Running", "--timeout", "20s").code == 0
    served.run("cancel", "--queue", "shared")
