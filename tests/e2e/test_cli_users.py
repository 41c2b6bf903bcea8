"""On the command line everybody sees whose work is whose, and can list their own."""

from __future__ import annotations

import json

import pytest

from holdfast.app.entrance import accounts
from tests.e2e.test_cli_shell import Shell, served, shell

__all__ = ["served", "shell"]


WORK = """
{name: one, command: [sleep, "100"], resources: {cpu: 0.1}}
---
{name: sweep, command: [sleep, "100"], array: {indices: 0-1}, resources: {cpu: 0.1}}
---
apiVersion: holdfast.dev/v1
kind: JobSet
metadata: {name: set}
spec: {jobs: [{name: w, replicas: 1, command: [sleep, "100"], resources: {cpu: 0.1}}]}
"""


def _submit_one_of_each(shell: Shell) -> None:
    (shell.folder / "work.yaml").write_text(WORK)
    said = shell.run("create", "-f", "work.yaml")
    assert said.code == 0, said.err


def _lists_by_user(shell: Shell) -> None:
    name = accounts.account().name
    for kind, mine in (("jobs", "one"), ("arrays", "sweep"), ("jobsets", "set")):
        for words in (("--mine",), ("-u", name), ("--user", name)):
            found = json.loads(shell.run("get", kind, *words, "-o", "json").out)["items"]
            assert {one["submitted_by"] for one in found} == {name}
            assert mine in {one["name"] for one in found}
        assert json.loads(shell.run("get", kind, "-u", "nobody-else", "-o", "json").out) == {"items": []}
        columns, *rows = shell.run("get", kind, "-o", "wide").out.splitlines()
        assert "USER" in columns
        assert all(name in row for row in rows)
    assert "sweep" in shell.run("get", "jobs", "--mine").out, "arrays are shown among jobs"
    assert "sweep" not in shell.run("get", "jobs", "-u", "nobody-else").out
    assert f"Submitted by: {name}" in shell.run("describe", "one").out
    assert f"{name}" in shell.run("get", "jobs", "-o", "custom-columns=USER:.submitted_by").out


@pytest.mark.slow
def test_with_a_server_work_is_listed_by_whose_it_is(served: Shell) -> None:
    _submit_one_of_each(served)
    _lists_by_user(served)


@pytest.mark.slow
def test_without_a_server_work_is_listed_by_whose_it_is(shell: Shell) -> None:
    _submit_one_of_each(shell)
    _lists_by_user(shell)


def test_mine_and_a_user_are_not_asked_for_together_nor_of_what_belongs_to_nobody(shell: Shell) -> None:
    said = shell.run("get", "jobs", "--mine", "-u", "ann")
    assert (said.code, "--mine: cannot be set together with --user" in said.err) == (2, True), said.err
    said = shell.run("get", "queues", "--mine")
    assert (said.code, "--mine: only filters lists" in said.err) == (2, True), said.err


def test_a_report_is_printed_as_a_table_and_as_csv(served: Shell) -> None:
    assert served.run("run", "--label", "team=nlp", "--", "sh", "-c", "exit 3").code == 3
    name = accounts.account().name
    columns, *rows = served.run("report").out.splitlines()
    hours = ("CPU-HOURS", "GIB-HOURS", "GPU-HOURS", "WASTED-CPU", "WASTED-GIB", "WASTED-GPU")
    assert tuple(columns.split()) == ("USER", "RUNS", "FAILED", *hours)
    assert rows[0].split()[0] == name
    header, line = served.run("report", "--by", "user", "--since", "30d", "-o", "csv").out.splitlines()
    assert header.startswith("name,runs,failed_runs,cpu_hours,memory_gib_hours,gpu_hours,wasted_cpu_hours")
    assert line.startswith(f"{name},")
    assert {
        one["name"] for one in json.loads(served.run("report", "--by", "label:team", "-o", "json").out)["items"]
    } >= {"nlp"}
    said = served.run("report", "--by", "colour")
    assert (said.code, "--by" in said.err) == (2, True)
