"""Commands that start at once: a process that has read all of the program forks each of them.

Each is a process of its own with the words, the input, the directory and the environment that it is given; only the
third of a second it would spend on reading its own code is saved. Not for variables that matter before a program's
first line, such as Python's own.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOLDFAST = (sys.executable, "-c", "from holdfast.cli.main import main; main()")
PARENT = """
import atexit, gc, importlib, json, os, pkgutil, signal, socket, sys, threading
import holdfast.app.connect, holdfast.app.embedded, holdfast.app.inprocess, holdfast.cli.commands, holdfast.client
from holdfast.cli.main import main

for module in pkgutil.walk_packages(holdfast.cli.commands.__path__, "holdfast.cli.commands."):
    importlib.import_module(module.name)


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
    os.environ.clear()
    os.environ.update(told["environ"])
    os.chdir(told["folder"])
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


def run(
    words: Sequence[str], environ: Mapping[str, str], text: str = "", *, patience_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command with these words, a text as its input and an environment.

    Raises:
        subprocess.TimeoutExpired: It takes too long; it was killed.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode())
        given.seek(0)
        code = _ended(words, environ, (given, out, err), patience_s)
        said = [_all_of(stream) for stream in (out, err)]
    return subprocess.CompletedProcess([*HOLDFAST, *words], code, *said)


def _ended(words: Sequence[str], environ: Mapping[str, str], streams: Sequence[IO[bytes]], patience_s: float) -> int:
    told = json.dumps({"words": words, "environ": dict(environ), "folder": str(Path.cwd())}).encode()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(patience_s)
        socket.send_fds(_parent(), [b"."], [theirs.fileno()])
        theirs.close()
        socket.send_fds(ours, [b"%8d" % len(told)], [stream.fileno() for stream in streams])
        ours.sendall(told)
        pid = int(ours.recv(8, socket.MSG_WAITALL))
        try:
            return int(ours.recv(8, socket.MSG_WAITALL))
        except TimeoutError as error:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*HOLDFAST, *words], patience_s) from error


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
