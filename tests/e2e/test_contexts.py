"""Servers that a person has named: logging in, choosing one, and where their tokens are."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import HOLDFAST, PATIENCE_S, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYRING = """
import json, pathlib, sys
from keyring.backend import KeyringBackend

FILE = pathlib.Path(sys.modules[__name__].__file__).with_name("kept.json")

class Desktop(KeyringBackend):
    priority = 5

    def _kept(self):
        return json.loads(FILE.read_text()) if FILE.exists() else {}

    def get_password(self, service, username):
        return self._kept().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        FILE.write_text(json.dumps({**self._kept(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        gone = f"{service}/{username}"
        FILE.write_text(json.dumps({name: kept for name, kept in self._kept().items() if name != gone}))
"""


class Desk:
    """A person at another machine, who has neither a data directory nor a server."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.file = home / ".config" / "holdfast" / "contexts.json"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "XDG_"))}
        self.environ = {**kept, "HOME": str(home), "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring", **environ}

    def run(self, *words: str, text: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HOLDFAST, *words],
            env={**self.environ, **environ},
            cwd=self.home,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("lab"))
    with server.start() as client:
        client.submit({"name": "theirs", "shell": "true"})
    yield server
    server.clean_up()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.slow
def test_who_logs_in_asks_that_server_until_another_is_chosen(served: Server, desk: Desk, tmp_path: Path) -> None:
    url, token = str(served.address()["url"]), str(served.address()["token"])
    said = desk.run("login", url, "--name", "lab", text=f"{token}\n")
    assert (said.returncode, said.stdout) == (0, f"commands now use lab; its token is in {desk.file}\n"), said
    assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(desk.file.parent.stat().st_mode) == 0o700
    assert "theirs" in desk.run("get", "jobs").stdout
    assert "theirs" not in desk.run("get", "jobs", HOLDFAST_DATA=str(tmp_path / "own")).stdout, "it is named"
    both = {"HOLDFAST_DATA": str(tmp_path / "own"), "HOLDFAST_CONTEXT": "lab"}
    assert "theirs" in desk.run("get", "jobs", **both).stdout
    assert desk.run("context", "use", "local").returncode == 0
    assert "theirs" not in desk.run("get", "jobs").stdout
    assert "theirs" in desk.run("get", "jobs", HOLDFAST_CONTEXT="lab").stdout
    assert desk.run("context", "add", "box", "unix:///nowhere/holdfast.sock").returncode == 0
    listed = desk.run("context", "list").stdout.splitlines()
    assert [line.split() for line in listed] == [
        ["CURRENT", "NAME", "SERVER", "TOKEN"],
        ["*", "local"],
        ["lab", url, "file"],
        ["box", "unix:///nowhere/holdfast.sock"],
    ]
    assert desk.run("context", "use", "box").returncode == 0
    assert (desk.run("get", "jobs").returncode, token in desk.file.read_text()) == (5, True)
    assert desk.run("context", "remove", "box").stdout == "box removed; commands now use local\n"
    assert desk.run("context", "remove", "lab").returncode == 0
    assert token not in desk.file.read_text()


def test_a_wrong_token_is_not_kept_and_none_is_sent_in_clear(served: Server, desk: Desk) -> None:
    wrong = desk.run("login", str(served.address()["url"]), text="wrong\n")
    assert (wrong.returncode, desk.file.exists()) == (4, False), wrong
    clear = desk.run("login", "http://lab.example:7070", text="secret\n")
    assert (clear.returncode, "a token is not sent to http://lab.example:7070" in clear.stderr) == (4, True)
    nothing = desk.run("login", str(served.address()["url"]))
    assert (nothing.returncode, "the token is empty" in nothing.stderr) == (2, True)
    unnamed = desk.run("login", "unix:///run/holdfast/holdfast.sock", text="token\n")
    assert (unnamed.returncode, "--name: is required" in unnamed.stderr) == (2, True)


def test_a_token_is_in_the_keyring_where_there_is_one(served: Server, tmp_path: Path) -> None:
    if find_spec("keyring") is None:
        pytest.skip("NO KEYRING: its library is not installed (pip install keyring)")
    (tmp_path / "desktop.py").write_text(KEYRING)
    desk = Desk(
        tmp_path, PYTHONPATH=os.pathsep.join((str(tmp_path), *sys.path)), PYTHON_KEYRING_BACKEND="desktop.Desktop"
    )
    url, token = str(served.address()["url"]), str(served.address()["token"])
    said = desk.run("login", url, text=f"{token}\n")
    assert said.stdout == "commands now use 127.0.0.1; its token is in the keyring\n", said
    assert token not in desk.file.read_text()
    assert json.loads((tmp_path / "kept.json").read_text()) == {"holdfast/127.0.0.1": token}
    assert "theirs" in desk.run("get", "jobs").stdout
    lost = desk.run("get", "jobs", PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    assert (lost.returncode, f"holdfast login {url} --name 127.0.0.1" in lost.stderr) == (5, True)
    assert desk.run("context", "remove", "127.0.0.1").returncode == 0
    assert json.loads((tmp_path / "kept.json").read_text()) == {}


def test_a_list_that_others_can_read_or_that_is_none_is_refused(served: Server, desk: Desk) -> None:
    url, token = str(served.address()["url"]), str(served.address()["token"])
    assert desk.run("login", url, text=token).returncode == 0
    desk.file.chmod(0o640)
    said = desk.run("get", "jobs")
    assert (said.returncode, f"{desk.file} can be read by other users" in said.stderr) == (4, True), said
    desk.file.chmod(0o600)
    desk.file.write_text("[]")
    said = desk.run("get", "jobs")
    assert (said.returncode, "was not written by `holdfast login`" in said.stderr) == (5, True), said


def test_what_is_wrong_with_a_context_is_said_and_changes_nothing(desk: Desk) -> None:
    for words, code, text in (
        (("context", "use", "lab"), 3, "there is no context 'lab'"),
        (("context", "remove", "lab"), 3, "there is no context 'lab'"),
        (("context", "add", "local", "http://127.0.0.1:1"), 4, "a context 'local' exists already"),
        (("context", "add", "lab", "nowhere"), 2, "'nowhere' is not an address"),
        (("context", "add", "lab"), 2, "URL: is required for add"),
        (("context", "list", "lab"), 2, "NAME: does not apply to list"),
    ):
        said = desk.run(*words)
        assert (said.returncode, text in said.stderr) == (code, True), said
    assert not desk.file.exists()
    unknown = desk.run("get", "jobs", HOLDFAST_CONTEXT="lab")
    assert (unknown.returncode, "HOLDFAST_CONTEXT: there is no context 'lab'" in unknown.stderr) == (2, True), unknown
