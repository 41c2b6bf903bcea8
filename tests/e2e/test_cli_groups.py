"""On the command line a group is put together, listed, followed and ended by its name."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_cli_shell import Shell, served, shell

__all__ = ["served", "shell"]


@pytest.mark.slow
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


WORK = """
{name: alone, command: [sleep, "100"]}
---
{name: grid, command: [sleep, "100"], array: {indices: 0-1}}
---
{apiVersion: holdfast.dev/v1, kind: JobSet, metadata: {name: set}, spec: {jobs: [{name: w, command: [sleep, "100"]}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: batch}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, command: [sleep, "100"]}]}}}
"""


@pytest.mark.slow
def test_all_of_some_files_is_put_into_a_group_of_which_cancel_leaves_job_sets_and_says_so(served: Shell) -> None:
    (served.folder / "work.yaml").write_text(WORK)
    said = served.run("submit", "-f", "work.yaml", "--group", "exp/lr 0.1")
    assert said.code == 0, said.err
    for kind, names in (("jobs", {"alone", "batch", "set-w-0"}), ("arrays", {"grid"}), ("jobsets", {"set"})):
        found = json.loads(served.run("get", kind, "--group", "exp/", "-o", "json").out)["items"]
        assert {one["name"] for one in found} == names
        assert {one["group"] for one in found} == {"exp/lr 0.1"}
    said = served.run("cancel", "--group", "exp/", "--yes")
    assert (said.code, "left as they are: job sets set;" in said.err) == (0, True), said.err
    assert json.loads(served.run("get", "job", "set-w-0", "-o", "json").out)["state"] != "Cancelled"
    assert served.run("wait", "alone", "--timeout", "30s").code == 1
