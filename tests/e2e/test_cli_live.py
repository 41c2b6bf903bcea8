"""What is drawn on a real terminal while real jobs go on, and what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, until
from tests.e2e.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

WAITS = 'echo begun; echo 30/100 > "$HOLDFAST_PROGRESS_FILE"; until test -e {gate}; do sleep 0.05; done; echo all done'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Client]]:
    server = Server(tmp_path_factory.mktemp("live"))
    with server.start() as client:
        yield server, client
    server.clean_up()


def program(gate: Path) -> list[str]:
    """Report a progress, and wait until a file is there."""
    return ["sh", "-c", WAITS.format(gate=gate)]


def test_wait_shows_how_far_a_job_is_and_then_how_it_ended(place: tuple[Server, Client], tmp_path: Path) -> None:
    server, client = place
    job = client.submit({"name": "train", "command": program(tmp_path / "gate")})
    with Terminal(server.environ, "wait", "train", columns=60) as terminal:
        wanted = "train: Running, [######--------------] 30/100, "
        assert len(terminal.until_screen(lambda lines: lines and lines[0].startswith(wanted), "its progress")) == 1
        (tmp_path / "gate").touch()
        terminal.ended()
        ending, last = terminal.screen
    assert (ending.startswith("train: Succeeded after "), last) == (True, "  all done")
    assert until(client, job.id, lambda view: view.state == "Succeeded").attempt == 1


def test_ctrl_c_leaves_a_job_that_is_waited_for_and_a_narrow_terminal_one_line(
    place: tuple[Server, Client], tmp_path: Path
) -> None:
    server, client = place
    job = client.submit({"name": "a-job-with-a-long-name", "command": program(tmp_path / "gate")})
    with Terminal(server.environ, "wait", job.id, columns=34) as terminal:
        assert len(terminal.until_screen(lambda lines: "Runn" in "".join(lines), "its state")) == 1
        terminal.interrupt()
        terminal.ended()
        assert terminal.process.returncode == 130
    assert "no longer waiting" in terminal.text
    assert client.job(job.id).state == "Running"
    (tmp_path / "gate").touch()
    until(client, job.id, lambda view: view.state == "Succeeded")


def test_run_has_the_line_below_what_the_program_prints(place: tuple[Server, Client], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Terminal(place[0].environ, "run", "--name", "talks", "--", *program(gate)) as terminal:
        wanted = "talks: Running"
        shown = terminal.until_screen(lambda lines: len(lines) == 2 and lines[1].startswith(wanted), "the line")
        assert shown[0] == "begun"
        gate.touch()
        terminal.ended()
        assert terminal.screen == ["begun", "all done"]
