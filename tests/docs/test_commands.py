"""Every command that README and docs show is run, and what they show of its output is what it prints.

A block of ``sh`` is run and must succeed; in a block of ``console`` the lines after ``$`` are run and the other
lines are their output, compared without times, ids and names of machines. All of a page share one data directory.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "side-by-side.md"]
QUICK = frozenset({"README.md", "index.md", "rest.md", "operations.md", "how-it-works.md", "concepts.md"})
"""The rest takes minutes, and is run with the long tests."""
FENCE = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVER = re.compile(r"holdfast up( --door \w+)?")
PATIENCE_S = 60.0
UNSTABLE = (
    (re.compile(r"\b[0-9a-z]{26}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b"), "DURATION"),
    (re.compile(rf"\b(vm|{re.escape(socket.gethostname().split('.')[0].lower() or 'local')})\b"), "NODE"),
    (re.compile(r"^Submitted by: .*$", re.MULTILINE), "Submitted by: USER"),
    (re.compile(r"[ \t]+"), " "),
)


def shown(page: Path) -> list[tuple[str, str | None]]:
    """List a page's commands with the output shown, ``None`` where none is."""
    found: list[tuple[str, str | None]] = []
    for kind, text in FENCE.findall(page.read_text()):
        if kind == "sh":
            found.append((text, None))
        else:
            found.extend(_console(text))
    return found


def _console(text: str) -> list[tuple[str, str | None]]:
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def stable(text: str) -> list[str]:
    """Leave out what differs from run to run."""
    for pattern, word in UNSTABLE:
        text = pattern.sub(word, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


class Shell:
    """Runs commands as a person in a clone would, with a data directory of its own."""

    def __init__(self, data: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self._data = data
        self._environ = {**os.environ, "HOLDFAST_DATA": str(data), "PATH": path}
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, command: str) -> str:
        """Run a command to its end, or leave a server running; returns what it printed."""
        if SERVER.fullmatch(command.strip()):
            self._up(command.split())
            return ""
        done = subprocess.run(
            ["sh", "-ec", command],
            cwd=ROOT,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def _up(self, words: list[str]) -> None:
        environ = {**self._environ, "HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0"}
        self._server = subprocess.Popen([*words, "--port", "0"], cwd=ROOT, env=environ)
        give_up = time.monotonic() + PATIENCE_S
        while not (self._data / "server.json").exists():
            assert self._server.poll() is None
            assert time.monotonic() < give_up
            subprocess.run(["holdfast", "version"], env=self._environ, check=False, capture_output=True)

    def close(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.wait(PATIENCE_S)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path / "data")
    yield made
    made.close()


PARAMETERS = [
    pytest.param(page, id=str(page.relative_to(ROOT)), marks=() if page.name in QUICK else pytest.mark.slow)
    for page in PAGES
    if shown(page)
]


@pytest.mark.timeout(300)  # a page may be long, and each command has its own patience
@pytest.mark.parametrize("page", PARAMETERS)
def test_the_commands_of_a_page_do_what_it_says(page: Path, shell: Shell) -> None:
    for command, output in shown(page):
        printed = shell.run(command)
        if output is not None:
            assert stable(printed) == stable(output)
