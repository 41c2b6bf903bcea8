"""On the command line a group is put together, listed, followed and ended by its name."""

from __future__ import annotations

import json

from tests.e2e.test_cli_shell import Shell, served, shell

__all__ = ["served", "shell"]


def test_a_group_is_listed_held_and_cancelled_whatever_is_in_it(served: Shell) -> None:
    for group, name in (("sweeps/7", "one"), ("sweeps/7/a", "two"), ("sweeps/70", "other"), ("", "none")):
        words = ("--group", group) if group else ()
        assert served.run("run", "--detach", "--name", name, *words, "--", "sleep", "100").code == 0
    tasks = ("--array", "0-1", "--group", "sweeps/7", "--name", "many")
    assert served.run("run", "--detach", *tasks, "--", "sleep", "100").code == 0

    def listed(*words: str) -> set[str]:
        return {one["name"] for one in json.loads(served.run("get", "jobs", *words, "-o", "json").out)["items"]}

    assert listed("--group", "sweeps/7") >= {"one"}
    assert "two" not in listed("--group", "sweeps/7")
    assert listed("--group", "sweeps/7/") >= {"one", "two"}
    assert "Group:" in served.run("describe", "two").out
    said = served.run("hold", "--group", "sweeps/7/a", "--state", "Running,Queued", "--yes")
    assert (said.code, "two" in said.out + said.err) == (0, True), said.err
    said = served.run("cancel", "--group", "sweeps/7/", "--yes")
    assert said.code == 0, said.err
    for name in ("one", "two"):  # a held job is cancelled, too
        assert served.run("wait", name, "--timeout", "30s").code == 1
    assert served.run("wait", "array/many", "--timeout", "30s").code == 1
    states = {one["name"]: one["state"] for one in json.loads(served.run("get", "jobs", "-o", "json").out)["items"]}
    assert "Cancelled" not in {states["other"], states["none"]}
    told = json.loads(served.run("events", "--group", "sweeps/7/a", "-o", "json").out)["items"]
    assert told[0]["type"] == "dev.holdfast.job.submitted.v1"
    assert told[-1]["type"] == "dev.holdfast.job.cancelled.v1"
    said = served.run("get", "queues", "--group", "x")
    assert (said.code, "--group: only filters lists" in said.err) == (2, True), said.err
