"""``get --watch`` on a real terminal and into a pipe, while a real server works, dies and comes back."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.watching.reaching import AWAY
from tests.e2e import commands
from tests.e2e.server import Server, until, wait_until
from tests.e2e.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.clean_up()


class Watcher:
    """``get --watch`` whose output goes into files."""

    def __init__(self, server: Server, folder: Path, *words: str) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err, Path(os.devnull).open("rb") as nothing:
            self.process = commands.start(("get", *words, "--watch"), server.environ, (nothing, out, err))

    def shows(self, *wanted: str) -> None:
        """Wait until a line has all of these words."""
        wait_until(lambda: any(set(wanted) <= set(line.split()) for line in self._lines()), f"{wanted}")

    def _lines(self) -> list[str]:
        assert self.process.poll() is None, self.err.read_text()
        return self.out.read_text().splitlines()

    def end(self) -> tuple[int, list[str]]:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60), self.out.read_text().splitlines()


@pytest.mark.slow  # two servers
def test_a_list_goes_on_when_the_server_is_killed_and_comes_back(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        gone = client.submit({"name": "first", "command": ["true"]})
        until(client, gone.id, lambda view: view.state == "Succeeded")
        rows = Watcher(server, tmp_path, "jobs")
        rows.shows("first", "Succeeded")
    server.end(signal.SIGKILL)
    wait_until(lambda: AWAY in rows.err.read_text(), "a look at a server that is gone")
    with server.start() as client:
        client.submit({"name": "second", "command": ["sleep", "0.1"]})
        rows.shows("second", "Succeeded")
        code, lines = rows.end()
    assert code == 130
    assert [line.split()[:2] for line in lines[:2]] == [["NAME", "STATE"], ["first", "Succeeded"]]
    assert len([line for line in lines if line.startswith("first")]) == 1, "it did not change"
    assert rows.err.read_text().count(AWAY) == 1


@pytest.mark.parametrize("kind", ["jobs", "arrays", "nodes", "queues"])
def test_a_kind_can_be_watched_as_json_one_document_a_line(kind: str, tmp_path: Path, idle: Server) -> None:
    watcher = Watcher(idle, tmp_path, kind, "-o", "json")
    wait_until(lambda: watcher.out.read_text().endswith("\n"), f"one of the {kind}")
    code, lines = watcher.end()
    assert code == 130, watcher.err.read_text()
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one of each, on which nothing goes on."""
    server = Server(tmp_path_factory.mktemp("idle"))
    try:
        with server.start() as client:
            client.submit({"name": "alone", "command": ["true"]})
            client.submit_array({"name": "sweep", "command": ["true"], "array": {"indices": "0-1"}})
            wait_until(lambda: client.array("sweep").state == "Succeeded", "the array ends")
            until(client, "alone", lambda view: view.state == "Succeeded")
            yield server
    finally:
        server.clean_up()


def test_settings_are_watched_one_a_line(tmp_path: Path, idle: Server) -> None:
    watcher = Watcher(idle, tmp_path, "settings")
    watcher.shows("defaultPolicyName", "none")
    with idle.client() as client:
        client.put_settings({"globalMaxRetries": 7})
    watcher.shows("globalMaxRetries", "7")
    code, lines = watcher.end()
    assert (code, lines[0].split()) == (130, ["SETTING", "VALUE"])
    assert [line.split() for line in lines if line.startswith("globalMax")] == [
        ["globalMaxRetries", "unlimited"],
        ["globalMaxRetries", "7"],
    ]


def test_what_was_deleted_has_its_row_once_more_with_a_state_that_says_so(tmp_path: Path, idle: Server) -> None:
    kinds = (
        ("arrays",),
        ("jobs",),
        ("queues",),
        ("array", "short"),
        ("arrays", "-o", "json"),
        ("queues", "-o", "name"),
    )
    folders = [tmp_path / str(number) for number in range(len(kinds))]
    for folder in folders:
        folder.mkdir()
    with idle.client() as client:
        client.queues.put("spare", {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "spare"}})
        client.submit_array({"name": "short", "command": ["true"], "array": {"indices": "0-1"}})
        wait_until(lambda: client.array("short").state == "Succeeded", "the array ends")
        watchers = [Watcher(idle, folder, *words) for folder, words in zip(folders, kinds, strict=True)]
        for watcher, name in zip(
            watchers, ("short", "short", "spare", "short", '"short",', "queue/spare"), strict=True
        ):
            watcher.shows(name)
        client.delete_array("short")
        client.queues.delete("spare")
        watchers[0].shows("short", "Deleted")
        watchers[1].shows("short", "Deleted")
        watchers[2].shows("spare", "Deleted")
        watchers[3].shows("short", "Deleted")
        watchers[4].shows('"Deleted",')
    ended = [watcher.end() for watcher in watchers]
    assert {code for code, _ in ended} == {130}
    assert [sum("Deleted" in line for line in lines) for _, lines in ended] == [1, 1, 1, 1, 1, 0]
    assert ended[2][1][0].split()[-1] == "STATE", "queues have none otherwise"
    gone = json.loads(ended[4][1][-1])
    assert (gone["name"], gone["state"], gone["succeeded"]) == ("short", "Deleted", 2)


def test_on_a_terminal_the_table_is_drawn_again_and_left_there(idle: Server) -> None:
    with Terminal(idle.environ, "get", "jobs", "--watch", lines=5, columns=70) as terminal:
        before = terminal.until_screen(lambda lines: len(lines) == 3 and lines[-1].startswith("sweep"), "the table")
        assert [line.split()[:2] for line in before] == [
            ["NAME", "STATE"],
            ["alone", "Succeeded"],
            ["sweep", "Succeeded"],
        ]
        with idle.client() as client:
            job = client.submit({"name": "more", "command": ["true"]})
            until(client, job.id, lambda view: view.state == "Succeeded")
            client.submit({"name": "again", "command": ["true"]})
        shown = terminal.until_screen(lambda lines: lines[-1] == "and 1 more" and "again" in "".join(lines), "newest")
        assert (len(shown), max(map(len, shown)) <= 70) == (5, True)
        terminal.resize(20, 60)
        terminal.until_screen(lambda lines: len(lines) == 5 and lines[-1].startswith("sweep"), "all of them")
        terminal.interrupt()
        terminal.ended()
        assert (terminal.process.returncode, "\x1b[?1049l" in terminal.raw, "\x1b[?25h" in terminal.raw) == (
            130,
            True,
            True,
        )
        assert "sweep" in terminal.screen[-1]
