"""A real ``holdfast up`` as a process that tests start, kill and start again on one data directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from holdfast.client import Client
from holdfast.errors import Unavailable
from tests import databases
from tests.e2e import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.wire.jobs import JobView

HOLDFAST = commands.HOLDFAST
PATIENCE_S = 60.0
SOON_S = 0.02


def wait_until(condition: Callable[[], object], what: str, *, within_s: float = PATIENCE_S) -> None:
    """Wait for something real, and fail with its name when it does not come."""
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"never came to it: {what}")
        pause.wait(SOON_S)


class Server:
    """The server of one data directory: at most one process at a time."""

    forks = True
    """Whether servers and commands are forked from a process that has read all of the program; set for each test."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """Remember the directory; nothing is started yet."""
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.environ: Mapping[str, str] = {
            **os.environ,
            "HOLDFAST_DATA": str(self.data),
            "HOLDFAST_CPUS": "4",
            **environ,
        }
        self.words: tuple[str, ...] = (*HOLDFAST, "up", "--port", "0")
        self.process: subprocess.Popen[bytes] | commands.Forked | None = None

    def spawn(self) -> subprocess.Popen[bytes] | commands.Forked:
        """Start the process and do not wait for anything."""
        databases.begin(self.data)
        head, words = self.words[: len(HOLDFAST)], self.words[len(HOLDFAST) :]
        with self.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            if self.forks and head == HOLDFAST and commands.can_be_forked(self.environ):
                self.process = commands.start(words, self.environ, (nothing, log, log), apart=True)
            else:
                self.process = subprocess.Popen(
                    self.words, env=self.environ, stdin=nothing, stdout=log, stderr=log, start_new_session=True
                )
        return self.process

    def start(self) -> Client:
        """Start it, wait until it serves, and connect."""
        process = self.spawn()
        wait_until(lambda: process.poll() is not None or self.serves(), "a server that serves")
        assert process.poll() is None, self.log.read_text()
        return self.client()

    def serves(self) -> bool:
        """Whether the present process has left its address: it does so once it can be spoken to."""
        with suppress(OSError, ValueError):
            return self.process is not None and self.address()["pid"] == self.process.pid
        return False

    def client(self) -> Client:
        """Connect to the present process."""
        address = self.address()
        return Client(str(address["url"]), str(address["token"]), pause=lambda _: None)

    def address(self) -> dict[str, object]:
        """Read what the present process left for those who look for it."""
        found: dict[str, object] = json.loads((self.data / "server.json").read_text())
        return found

    def has_answered(self, route: str) -> bool:
        """Whether the present process has answered a request of this route, by whatever way it came."""
        address = self.address()
        whoever = {"Authorization": f"Bearer {address['token']}"}
        told = httpx.get(f"{address['url']}/metrics", headers=whoever, timeout=PATIENCE_S).text
        return f'{route}",status="200"' in told

    def run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of whoever has this data directory, with a text as its input."""
        if self.forks and commands.can_be_forked(self.environ):
            return commands.run(words, self.environ, text, patience_s=PATIENCE_S)
        return subprocess.run(
            [*HOLDFAST, *words],
            env=self.environ,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )

    def json(self, *words: str) -> Any:  # noqa: ANN401 - any document
        """Run a command and read what it printed."""
        ended = self.run(*words, "-o", "json")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def end(self, number: int = signal.SIGKILL) -> int:
        """End the process by a signal and return what it ended with; programs, and what holds them, are left alone."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE_S)
        self.process = None
        return code

    def clean_up(self) -> None:
        """Leave no process behind, whatever became of the test."""
        if self.process is not None:
            self.end()
        for process in (*self.holders(), *self.programs()):
            with suppress(psutil.Error):
                process.kill()

    def holders(self, name: str = "holdfast-") -> list[psutil.Process]:
        """Find the processes that hold programs: ``holdfast-shim``, and ``holdfast-run`` for each."""
        found = []
        for process in psutil.process_iter(["cmdline", "name", "status"]):
            line = process.info["cmdline"] or []
            if str(self.data / "runs") in line and process.info["name"].startswith(name):
                found.append(process)
        return [process for process in found if process.info["status"] != psutil.STATUS_ZOMBIE]

    def shim(self) -> psutil.Process:
        """Find the shim; there is exactly one."""
        [shim] = self.holders("holdfast-shim")
        return shim

    def programs(self) -> list[psutil.Process]:
        """Find living processes whose environment says that they came from a run in the directory."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mark = process.environ().get("HOLDFAST_TERMINATION_LOG", "")
                if mark.startswith(str(self.data)) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


def until(client: Client, job: str, wanted: Callable[[JobView], object], *, within_s: float = PATIENCE_S) -> JobView:
    """Poll a job until it is as wanted; a server that is away for a moment is asked again."""
    seen: list[JobView] = []

    def is_wanted() -> bool:
        with suppress(Unavailable):
            seen.append(client.job(job))
            return bool(wanted(seen[-1]))
        return False

    wait_until(is_wanted, f"job {job} as wanted", within_s=within_s)
    return seen[-1]
