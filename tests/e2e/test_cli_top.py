"""``holdfast top`` on a real terminal, with real jobs: what is on the screen, what keys do, and what is left behind."""

from __future__ import annotations

import signal
import termios
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, until
from tests.e2e.terminal import Terminal
from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Client]]:
    """A server with a job that runs and one that failed."""
    server = Server(tmp_path_factory.mktemp("top"))
    try:
        with server.start() as client:
            says = "echo 30/100 > $HOLDFAST_PROGRESS_FILE; exec sleep 300"
            runs = client.submit({"name": "runs", "command": ["sh", "-c", says], "resources": {"cpu": "0.1"}})
            fails = client.submit({"name": "fails", "command": ["sh", "-c", "echo 'ValueError: no such key'; exit 3"]})
            until(client, fails.id, lambda view: view.state == "Failed")
            until(client, runs.id, lambda view: view.progress == "30/100")
            told = list(client.events(job=runs.id, types=["attempt.progressed"]))
            assert [one.data for one in told] == [{"attempt": 1, "rank": 0, "progress": "30/100"}]
            yield server, client
    finally:
        server.clean_up()


def opened(place: tuple[Server, Client], *words: str) -> Terminal:
    terminal = Terminal(place[0].environ, "top", *words)
    # A frame comes in parts, and its last line last.
    terminal.until_screen(lambda lines: "runs" in "\n".join(lines) and lines[-1].startswith("j/k move"), "a frame")
    return terminal


def test_a_frame_of_80_columns_has_what_runs_and_what_failed_and_why(place: tuple[Server, Client]) -> None:
    with opened(place) as terminal:
        lines = terminal.screen
        text = "\n".join(lines)
        assert lines[0].startswith("holdfast  1 Running, 1 Failed")
        assert all(
            word in text for word in ("queues    default: 1 Running", "cpu [", "RUNNING 1", "[###-------] 30/100")
        )
        [failed] = [line for line in lines if line.startswith("fails")]
        assert ("exit code 3: ValueError: no such key" in failed, lines[-1].startswith("j/k move")) == (True, True)
        terminal.resize(12, 40)
        terminal.until_screen(lambda lines: max(map(len, lines)) <= 40 and len(lines) <= 12, "a smaller frame")
        terminal.press("q")
        terminal.ended()
        assert (terminal.process.returncode, terminal.raw.endswith("\x1b[?1049l")) == (0, True)


def test_keys_explain_show_logs_filter_and_ask_before_they_cancel(place: tuple[Server, Client]) -> None:
    _, client = place
    job = client.submit({"name": "cancel-me", "command": ["sleep", "300"], "resources": {"cpu": "0.1"}})
    until(client, job.id, lambda view: view.state == "Running")
    with opened(place) as terminal:
        terminal.press("/cancel\r")
        terminal.until_screen(lambda lines: not any(line.startswith("runs") for line in lines), "one job")
        terminal.press("w")
        terminal.until_screen(lambda lines: "Job cancel-me is running" in lines[0], "why")
        terminal.press("qc")
        terminal.until_screen(lambda lines: lines[-1] == f"cancel cancel-me ({job.id})? [y/N]", "a question")
        terminal.press("n")
        terminal.until_screen(lambda lines: lines[-1] == "nothing was done", "it is left")
        assert client.job(job.id).state == "Running"
        terminal.press("cy")
        until(client, job.id, lambda view: view.state == "Cancelled")
        terminal.press("/\x1b")
        terminal.until_screen(lambda lines: any(line.startswith("fails") for line in lines), "all jobs")
        terminal.press("jl")
        terminal.until_screen(lambda lines: lines[0] == "ValueError: no such key", "its log")
        terminal.press("qr")
        terminal.until_screen(lambda lines: "retry requested" in lines[-1] or "ATTEMPT" in lines[-1], "it is retried")
    [fails] = client.jobs(name="fails")
    until(client, fails.id, lambda view: view.attempt == 2 and view.state == "Failed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(place: tuple[Server, Client], number: int) -> None:
    with opened(place) as terminal:
        assert not terminal.modes()[3] & termios.ECHO
        terminal.process.send_signal(number)
        terminal.ended()
        assert terminal.process.returncode == 128 + number
        assert terminal.modes()[3] & termios.ECHO
        assert terminal.raw.endswith("\x1b[?25h\x1b[?1049l")


def test_without_a_terminal_or_a_server_one_frame_is_printed(place: tuple[Server, Client], tmp_path: Path) -> None:
    served = Shell(place[0].data.parent, {}).run("top", "--once", "--name", "RUN")
    assert (served.code, "\x1b" in served.out, "fails" in served.out, "runs" in served.out) == (0, False, False, True)
    unserved = Shell(tmp_path).run("top")
    assert (unserved.code, "RUNNING 0" in unserved.out, "no server is running" in unserved.err) == (0, True, True)
