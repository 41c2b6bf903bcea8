"""Commands and servers that start at once: a process that has read all of the program forks each of them.

Each is a process of its own with the words, the input, the directory and the environment that it is given; only the
third of a second it would spend on reading its own code is saved, and the whole one of a server.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOLDFAST = (sys.executable, "-c", "from holdfast.cli.main import main; main()")
PARENT = """
import atexit, gc, importlib, io, json, os, pkgutil, signal, socket, sys, threading, time
import holdfast.api, holdfast.app, holdfast.cli.commands, holdfast.client
from holdfast.cli.main import main

for package in (holdfast.api, holdfast.app, holdfast.cli.commands):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
holdfast.api.http.serving.routing.routers()


def command(calls):
    "Fork a process for each call, which forks the command and tells its number and how it ended."
    while True:
        _, (handle,), _, _ = socket.recv_fds(calls, 1, 1)
        if os.fork():
            os.close(handle)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        calls.close()
        with socket.socket(fileno=handle) as call:
            size, streams, _, _ = socket.recv_fds(call, 8, 3)
            told = json.loads(call.recv(int(size), socket.MSG_WAITALL))
            pid = os.fork()
            if not pid:
                break
            call.sendall(b"%8d" % pid)
            call.sendall(b"%8d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    # Without a buffer a handler of a signal can write while a line is being written.
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0, closefd=False), errors="backslashreplace", write_through=True)
    os.environ.clear()
    os.environ.update(told["environ"])
    time.tzset()
    os.chdir(told["folder"])
    if told["apart"]:
        os.setsid()
    sys.argv[1:] = told["words"]


gc.freeze()
code = 0
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with socket.socket(fileno=int(sys.argv.pop())) as calls:
    try:
        command(calls)
    except ValueError:  # nobody calls any more
        sys.exit()
try:
    main()
except SystemExit as error:
    code = error.code or 0
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # to take the whole program apart takes longer than most commands
"""


class Forked:
    """A process that was forked, with what tests ask of a ``Popen``."""

    def __init__(self, words: Sequence[str], call: socket.socket) -> None:
        """Learn its number, and be told on the same connection how it ends."""
        self.args = [*HOLDFAST, *words]
        self.returncode: int | None = None
        self._call = call
        self.pid = int(call.recv(8, socket.MSG_WAITALL))

    def poll(self) -> int | None:
        """Return what it ended with, if it has."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(timeout=0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return what it ended with, once it has.

        Raises:
            subprocess.TimeoutExpired: It takes too long.
        """
        if self.returncode is None:
            if not select.select([self._call], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._call.recv(8, socket.MSG_WAITALL))
            self._call.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class Piped(Forked):
    """A forked command in a session of its own, whose output is read while it runs."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], *, folder: Path | None = None) -> None:
        """Start it with nothing as its input."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        self.stdout, self.stderr = (open(end, encoding="utf-8", errors="replace") for end in (out, err))  # noqa: PTH123, SIM115 - no path; closed with it
        with Path(os.devnull).open("rb") as nothing, open(out_end, "wb") as to_out, open(err_end, "wb") as to_err:  # noqa: PTH123 - no paths
            super().__init__(words, _call(words, environ, (nothing, to_out, to_err), folder=folder, apart=True))

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both streams to their end, and return what was left in them once it has ended."""
        with ThreadPoolExecutor(2) as readers:
            try:
                out, err = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr), timeout=timeout)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return out, err

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        """Use it for as long as the context lasts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Kill it, unless it has ended, and close the streams."""
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


def can_be_forked(environ: Mapping[str, str]) -> bool:
    """Whether there is no variable that matters before a program's first line, beside those that all of us have."""
    early = [name for name in {*environ, *os.environ} if name.startswith(("LD_", "PYTHON"))]
    return all(environ.get(name) == os.environ.get(name) for name in early)


def start(
    words: Sequence[str],
    environ: Mapping[str, str],
    streams: Sequence[IO[bytes]],
    *,
    folder: Path | None = None,
    apart: bool = False,
) -> Forked:
    """Start a command with these words, an environment and three streams; in a session of its own if it is apart."""
    return Forked(words, _call(words, environ, streams, folder=folder, apart=apart))


def _call(
    words: Sequence[str],
    environ: Mapping[str, str],
    streams: Sequence[IO[bytes]],
    *,
    folder: Path | None = None,
    apart: bool = False,
) -> socket.socket:
    """Have a command forked; its number, and later how it ended, arrive on the connection that is returned."""
    told = {"words": words, "environ": dict(environ), "folder": str(folder or Path.cwd()), "apart": apart}
    sent = json.dumps(told).encode()
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_parent(), [b"."], [theirs.fileno()])
    socket.send_fds(ours, [b"%8d" % len(sent)], [stream.fileno() for stream in streams])
    ours.sendall(sent)
    return ours


def run(
    words: Sequence[str], environ: Mapping[str, str], text: str = "", *, folder: Path | None = None, patience_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command with these words, a text as its input and an environment.

    Raises:
        subprocess.TimeoutExpired: It takes too long; it was killed.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode())
        given.seek(0)
        command = start(words, environ, (given, out, err), folder=folder)
        try:
            code = command.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            command.kill()
            command.wait()
            raise
        said = [_all_of(stream) for stream in (out, err)]
    return subprocess.CompletedProcess(command.args, code, *said)


def _all_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


@cache
def _parent() -> socket.socket:
    """Start the process that forks commands, once; it ends when nobody can call it any more."""
    ours, theirs = socket.socketpair()
    with theirs:
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        parent.wait()

    atexit.register(end)
    return ours
