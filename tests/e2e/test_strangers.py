"""Other users of the machine: what they leave where Holdfast looks is neither believed nor used."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import HOLDFAST, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ABSENT = "NO OTHER USER: only root can start programs as one, and only with setpriv (Debian: util-linux)"
CALLER, STRANGER = 65532, 65533
SOURCE = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
AS_CALLER = (
    *("setpriv", f"--reuid={CALLER}", f"--regid={CALLER}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"),  # this Python may be in root's home
)


@dataclass
class Caller:
    """A person of the machine, who is not root."""

    data: Path

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return self.run_as(AS_CALLER, [*HOLDFAST, *words], **environ)

    def run_as(self, who: Sequence[str], words: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*who, *words],
            cwd="/",
            env={**SOURCE, "PATH": os.defpath, "HOLDFAST_DATA": str(self.data), "TOK": "hunter2", **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def give(self, path: Path, uid: int, mode: int) -> None:
        os.chown(path, uid, uid)
        path.chmod(mode)


@pytest.fixture
def caller() -> Iterator[Caller]:
    """A person with an empty data directory, in a folder that others can enter: pytest's cannot."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip(ABSENT)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-strangers-"))
    folder.chmod(0o755)
    made = Caller(folder / "data")
    made.data.mkdir()
    made.give(made.data, CALLER, 0o700)
    yield made
    shutil.rmtree(folder)


@contextmanager
def trap(data: Path, uid: int) -> Iterator[socket.socket]:
    """Leave the address of a port as a server would, as a file of another user's; yields what listens there."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, (data / "server.json").open("w") as file:
        listener.settimeout(0)
        fcntl.flock(file, fcntl.LOCK_EX)
        port = listener.getsockname()[1]
        file.write(json.dumps({"url": f"http://127.0.0.1:{port}", "token": "t", "pid": os.getpid()}))
        file.flush()
        os.chown(data / "server.json", uid, uid)
        (data / "server.json").chmod(0o644)
        yield listener


def nobody_came(listener: socket.socket) -> bool:
    try:
        came, _ = listener.accept()
    except BlockingIOError:
        return True
    came.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
    came.close()
    return False


@pytest.mark.parametrize("whose", [STRANGER, CALLER], ids=["another user's", "one's own, open to all"])
def test_a_secret_is_not_sent_where_a_directory_that_others_can_write_says(caller: Caller, whose: int) -> None:
    caller.give(caller.data, whose, 0o777)
    with trap(caller.data, STRANGER) as listener:
        for words in (["run", "--secret-env", "TOK", "--", "true"], ["up", "--port", "0"]):
            said = caller.run(*words)
            assert (said.returncode, said.stdout) == (4, ""), said
            assert "could take over jobs and secrets" in said.stderr
            assert (
                f"hint: {'run this as that user' if whose == STRANGER else 'if nobody else wrote there'}" in said.stderr
            )
        assert nobody_came(listener)
    assert {path.name for path in caller.data.iterdir()} == {"server.json"}, "nothing was made there"


def test_an_address_of_another_user_is_not_believed_in_a_directory_of_ones_own(caller: Caller) -> None:
    with trap(caller.data, STRANGER) as listener:
        said = caller.run("run", "--secret-env", "TOK", "--", "true")
        assert (said.returncode, f"server.json belongs to another user, number {STRANGER}" in said.stderr) == (4, True)
        assert nobody_came(listener)


def test_a_token_of_roots_may_be_read_by_whom_root_lets_and_one_of_another_users_is_refused(caller: Caller) -> None:
    token = caller.data.parent / "token"
    token.write_text("t")
    where = {"HOLDFAST_URL": "http://127.0.0.1:1", "HOLDFAST_TOKEN_FILE": str(token)}
    for owner, code in ((0, 5), (STRANGER, 4), (CALLER, 4)):  # 5: it is read, and nobody listens
        caller.give(token, owner, 0o644)
        said = caller.run("get", "queues", **where)
        assert (said.returncode, "token" in said.stderr) == (code, code == 4), said


def test_a_lock_of_another_user_keeps_a_server_from_starting_and_is_named(caller: Caller) -> None:
    (caller.data / "lock").touch()
    caller.give(caller.data / "lock", STRANGER, 0o666)
    said = caller.run("up", "--port", "0")
    assert (said.returncode, "lock belongs to another user" in said.stderr) == (4, True), said.stderr


def test_what_root_left_is_believed_and_root_may_use_what_is_anybodys(caller: Caller) -> None:
    with trap(caller.data, 0) as listener, ThreadPoolExecutor() as pool:
        asking = pool.submit(caller.run, "get", "jobs")
        listener.settimeout(PATIENCE_S)
        assert not nobody_came(listener)
        assert asking.result().returncode != 0
    environ = {**os.environ, "HOLDFAST_DATA": str(caller.data)}
    done = subprocess.run([*HOLDFAST, "run", "--", "true"], env=environ, cwd="/", check=False, timeout=PATIENCE_S)
    assert done.returncode == 0


def test_what_is_kept_of_jobs_is_private_whatever_others_are_let_do(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environ = {**os.environ, "HOLDFAST_DATA": str(data)}
    words = [*HOLDFAST, "run", "--", "sh", "-c", "echo said"]
    subprocess.run(words, env=environ, umask=0, check=True, timeout=PATIENCE_S, capture_output=True)
    modes = {str(path.relative_to(data)): path.lstat().st_mode for path in [data, *data.rglob("*")]}
    assert {name: stat.S_IMODE(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert any(name.endswith("/log") for name in modes)
