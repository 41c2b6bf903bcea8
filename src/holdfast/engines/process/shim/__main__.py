"""Starts a shim on a directory and returns as soon as it listens.

Run by path, isolated and without ``site``: ``python -I -S .../shim/__main__.py DIRECTORY LIMITS IDLE_S``.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from pathlib import Path

SOCKET_NAME, LOCK_NAME = "shim.sock", "shim.lock"


def main() -> None:
    """Become the shim of a directory, unless another process is that already."""
    directory, limits, idle_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from shim.loop import serve  # type: ignore[import-not-found]  # noqa: PLC0415 - only now can it be found

    os.chdir(directory)
    try:
        lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # Another shim is serving or about to leave: the starter tries to connect again.
    listener = _bind()
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        os.read(reading, 1)  # Wait until the other one listens: its process is the one that connections name.
        os._exit(0)
    _detach()
    listener.listen(16)
    os.close(writing)
    os.close(reading)
    serve(os.path.realpath(directory), listener, limits=limits, idle_s=idle_s)


def _bind() -> socket.socket:
    """Bind by a relative name: an absolute one may be longer than a socket's address can be."""
    Path(SOCKET_NAME).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    usual = os.umask(0o077)
    listener.bind(SOCKET_NAME)
    os.umask(usual)  # Runs inherit the server's umask.
    listener.settimeout(0)
    return listener


def _detach() -> None:
    """Leave the starter's session."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)  # Runs inherit descriptor 0 as their stdin.


if __name__ == "__main__":
    main()
