"""Accounts that tests make, and a server that runs programs as who submits them."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import HOLDFAST, PATIENCE_S, Server
from tests.e2e.test_strangers import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ABSENT = "NO ACCOUNTS: only root can make them, and only with useradd and setpriv (Debian: passwd, util-linux)"
SUBMIT = (
    "import json, sys; from holdfast.client import Client; print(Client(sys.argv[1]).submit(json.load(sys.stdin)).id)"
)


@dataclass
class Person:
    """An account of the machine, and what it asks a server by its socket."""

    name: str
    socket: Path

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.name).pw_uid

    def run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as this account."""
        return self._run([*HOLDFAST, *words], text)

    def _run(self, words: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
        """Run something that can read this Python, which may be in root's home."""
        who = ("setpriv", f"--reuid={self.name}", f"--regid={self.name}", "--init-groups")
        rights = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search")
        return subprocess.run(
            [*who, *rights, *words],
            cwd="/",
            env={**SOURCE, "PATH": os.defpath, "HOME": f"/home/{self.name}", "HOLDFAST_SOCKET": str(self.socket)},
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def submit(self, name: str, line: str, **fields: object) -> str:
        """Submit a line for the shell, which starts in its run's own directory; returns the job's id."""
        manifest = json.dumps({"name": name, "shell": line, "grace": "1s", **fields})
        return self.python(SUBMIT, f"unix://{self.socket}", text=manifest).strip()

    def python(self, script: str, *words: str, text: str = "") -> str:
        """Run a script as this account; returns what it wrote."""
        said = self._run([sys.executable, "-c", script, *words], text)
        assert said.returncode == 0, said.stderr
        return said.stdout

    def wrote(self, name: str, line: str, **fields: object) -> str:
        """Have a line run, wait for it, and return what it wrote."""
        job = self.submit(name, line, **fields)
        self.run("wait", job)
        return self.run("logs", job).stdout


def made(name: str) -> None:
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)


def gone(name: str) -> None:
    with suppress(KeyError):
        pwd.getpwnam(name)
        subprocess.run(["userdel", "--force", "--remove", name], check=True, capture_output=True)


@dataclass
class Machine:
    """A machine of two people, who share the server of root."""

    server: Server
    ann: Person
    bob: Person


def machine(before: Sequence[str] = (), **environ: str) -> Iterator[Machine]:
    """Make both, and the server in a folder that others can enter: pytest's cannot be; settings may name an account.

    What is ``before`` the server's command starts it, and may name the ``{folder}``.
    """
    if os.geteuid() != 0 or not (shutil.which("useradd") and shutil.which("setpriv")):
        pytest.skip(ABSENT)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-people-"))
    folder.chmod(0o755)
    socket = folder / "run" / "holdfast.sock"
    names = [f"hf-{name}-{os.getpid()}" for name in ("ann", "bob")]
    accounts = {"ann": names[0], "bob": names[1]}
    named = {name: value.format(**accounts) for name, value in environ.items()}
    server = Server(folder, **{"HOLDFAST_ACCOUNTS": f"door:ci={names[1]}", **named})
    others = ("setpriv", "--groups=1,2")  # which programs of accounts must not keep
    first = [word.replace("{folder}", str(folder)) for word in before]
    server.words = (*first, *others, *server.words, "--run-as", "submitter", "--socket", str(socket))
    try:
        for name in names:
            made(name)
        server.start().close()
        yield Machine(server, *(Person(name, socket) for name in names))
    finally:
        server.clean_up()
        for name in names:
            gone(name)
        shutil.rmtree(folder)
