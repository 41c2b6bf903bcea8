"""A signal that comes while a job or an array is being submitted stops it, as one that comes later does."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import termios
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.e2e.server import HOLDFAST
from tests.e2e.test_cli_shell import PATIENCE_S, Shell, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["served"]


class SlowAnswers:
    """Stands before a server, and keeps back the answer to a submission until it is told to give it."""

    def __init__(self, server: str) -> None:
        place = urlsplit(server)
        self._server = (place.hostname or "", place.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.answered, self.given = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.given.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(self._server)
            submits = threading.Event()
            for one, other, passing in ((client, server, self._asked), (server, client, self._told)):
                threading.Thread(target=self._pass, args=(one, other, passing, submits), daemon=True).start()

    def _pass(
        self,
        one: socket.socket,
        other: socket.socket,
        passing: Callable[[bytes, threading.Event], None],
        submits: threading.Event,
    ) -> None:
        with suppress(OSError):  # the command ended
            while data := one.recv(1 << 16):
                passing(data, submits)
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def _asked(self, data: bytes, submits: threading.Event) -> None:
        if data.startswith((b"POST /api/v1/jobs ", b"POST /api/v1/jobs?", b"POST /api/v1/arrays")):
            submits.set()

    def _told(self, _data: bytes, submits: threading.Event) -> None:
        if submits.is_set():
            self.answered.set()
            self.given.wait(PATIENCE_S)


@pytest.fixture(autouse=True)
def _hangups() -> Iterator[None]:
    """Have commands begin with SIGHUP as it usually is, also where these tests run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
@pytest.mark.parametrize("work", ["job", "array"])
def test_a_signal_while_the_answer_to_the_submission_is_on_its_way_cancels_what_was_submitted(
    served: Shell, number: signal.Signals, code: int, work: str
) -> None:
    found = json.loads((served.folder / "data" / "server.json").read_text())
    name = f"early-{work}-{code}"
    more = ("--array", "0-3", "--cpus", "0.1") if work == "array" else ()
    with closing(SlowAnswers(found["url"])) as way:
        environ = {"HOLDFAST_URL": way.url, "HOLDFAST_TOKEN": found["token"]}
        with Shell(served.folder, environ).start("run", "--name", name, *more, "--", "sleep", "60") as process:
            assert process.stderr is not None
            assert way.answered.wait(PATIENCE_S)
            process.send_signal(number)
            if number == signal.SIGINT:
                assert process.stderr.readline().startswith(f"the {work} is being submitted; press Ctrl-C again")
                process.send_signal(number)
            assert process.stderr.readline().startswith(f"cancelling the {work}")
            way.given.set()
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == code
    assert served.run("get", work, name, "-o", "json").json["state"] == "Cancelled"


def test_a_terminal_that_is_closed_cancels_the_job_of_its_run(served: Shell) -> None:
    terminal, inside = os.openpty()
    program = "echo tick; sleep 1000"
    with subprocess.Popen(
        [*HOLDFAST, "run", "--name", "hung-up", "--", "sh", "-c", program],
        env={**os.environ, "HOLDFAST_DATA": str(served.folder / "data")},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing else makes it its terminal
    ) as process:
        os.close(inside)
        while b"tick" not in os.read(terminal, 1 << 16):
            pass
        os.close(terminal)
        assert process.wait(PATIENCE_S) == 129
    assert served.run("get", "job", "hung-up", "-o", "json").json["state"] == "Cancelled"
