"""Lists on a real terminal of 80 columns, and for programs: real jobs on a real server."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from tests.e2e.server import Server, until
from tests.e2e.terminal import Terminal
from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client

LONG = "ValueError: no such key in a mapping, which is said in a line that is far longer than a terminal is wide"
WIDE = 80


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Client]]:
    """A server with jobs that share a name and failed with much to say, an array, and one that goes on."""
    server = Server(tmp_path_factory.mktemp("lists"))
    client = server.start()
    fails = {"name": "train", "command": ["sh", "-c", f"echo '{LONG}'; exit 3"], "labels": {"team": "nlp"}}
    failed = [client.submit(fails).id for _ in range(2)]
    client.submit_array({"name": "sweep", "command": ["true"], "array": {"indices": "0-3"}})
    for job in failed:
        until(client, job, lambda view: view.state == "Failed")
    until(client, "sweep-3", lambda view: view.state == "Succeeded")
    yield server, client
    client.close()
    server.clean_up()


@pytest.fixture
def shell(place: tuple[Server, Client]) -> Shell:
    return replace(Shell(place[0].data.parent), environ={})


@pytest.mark.parametrize(
    ("line", "rows"),
    [("get jobs", 3), ("get arrays", 1), ("get nodes", 1), ("attempts train", 1), ("events", None), ("get queues", 1)],
)
def test_each_row_is_one_line_of_a_terminal(place: tuple[Server, Client], line: str, rows: int | None) -> None:
    with Terminal(place[0].environ, *line.split(), columns=WIDE) as terminal:
        shown = terminal.ended().rstrip("\n").split("\n")
    assert max(map(cell_len, shown)) <= WIDE
    assert rows is None or len(shown) == rows + 1
    assert not any(one_id in "\n".join(shown) for one_id in (job.id for job in place[1].jobs()))


def test_of_jobs_with_one_name_each_can_be_named_as_it_is_shown(place: tuple[Server, Client], shell: Shell) -> None:
    shown = [line.split()[0] for line in shell.run("get", "jobs").out.splitlines()[1:3]]
    ids = [shell.run("get", "job", name, "-o", "json").json["id"] for name in shown]
    assert ids == [job.id for job in place[1].jobs(name="train")]
    assert all(name.startswith("train@") for name in shown)


def test_off_a_terminal_and_wide_nothing_is_cut(shell: Shell) -> None:
    for words in (("get", "jobs"), ("get", "jobs", "-o", "wide")):
        assert LONG in shell.run(*words).out
    wide = shell.run("get", "jobs", "-o", "wide").out.splitlines()
    assert {"ID", "SUBMITTED", "NODE", "LABELS"} <= set(wide[0].split())
    assert "team=nlp" in wide[1]


def test_as_csv_a_list_says_how_each_job_failed(shell: Shell) -> None:
    text = shell.run("get", "jobs", "-o", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["name"], row["exit_code"], row["labels"], row["cause"]) for row in rows] == [
        ("train", "3", "team=nlp", "kernel_nonzero_exit")
    ] * 2
    assert all(row["node"] and LONG in row["error_line"] for row in rows)
    assert next(csv.DictReader(io.StringIO(shell.run("attempts", "train", "-o", "csv").out)))["exit_code"] == "3"
    assert shell.run("get", "jobs", "-s", "held", "-o", "csv").out.startswith("id,name,")


def test_own_columns_look_into_all_that_is_known(shell: Shell) -> None:
    short = shell.run("get", "jobs", "-o", "custom-columns=A:.labels.team,B:.exit_code").out
    assert [line.split() for line in short.splitlines()] == [["A", "B"], ["nlp", "3"], ["nlp", "3"]]
    deep = shell.run("get", "jobs", "-o", "custom-columns=A:.spec.command[0],B:.attempts[*].cause,C:.node").out
    assert deep.splitlines()[1].split()[:2] == ["sh", "kernel_nonzero_exit"]
    assert "<none>" not in deep


def test_json_lists_say_how_jobs_ended(shell: Shell) -> None:
    items = json.loads(shell.run("get", "jobs", "-o", "json").out)["items"]
    assert [(item["exit_code"], item["labels"]) for item in items] == [(3, {"team": "nlp"})] * 2


def test_a_summary_says_what_failed_and_where(place: tuple[Server, Client], shell: Shell) -> None:
    text = shell.run("summary", "--since", "1h").out
    assert "kernel_nonzero_exit" in text
    found = shell.run("summary", "-l", "team=nlp", "-o", "json").json
    assert (found["jobs"], found["failed"], found["ettr"]) == ({"Failed": 2}, 2, 0.0)
    assert found["nodes"][0]["node"] == place[1].nodes()[0].name
    assert shell.run("summary", "--since", "0s", "-l", "x").err.count("\n  - --") == 2
