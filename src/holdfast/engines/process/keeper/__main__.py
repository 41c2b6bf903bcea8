"""Starts a keeper on a directory and returns as soon as it listens; leaves all work to ``loop``.

Run by path, isolated and without ``site``: ``python -I -S .../keeper/__main__.py DIRECTORY MEMORY IDLE_S``.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from pathlib import Path

SOCKET_NAME = "keeper.sock"


def main() -> None:
    """Become the keeper of a directory, unless another process is that already."""
    directory, limits, idle_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from keeper.loop import serve  # type: ignore[import-not-found]  # noqa: PLC0415 - only now can it be found

    os.chdir(directory)
    lock = os.open("keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # one is serving, or about to leave: whoever started us tries to connect again
    listener = _listen()
    _detach()
    serve(os.path.realpath(directory), listener, limits=limits, idle_s=idle_s)


def _listen() -> socket.socket:
    """Bind by a relative name: an absolute one may be longer than a socket's address can be."""
    Path(SOCKET_NAME).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    usual = os.umask(0o077)
    listener.bind(SOCKET_NAME)
    os.umask(usual)  # runs inherit the server's
    listener.listen(16)
    listener.settimeout(0)
    return listener


def _detach() -> None:
    """Leave the starter's session; its end of the fork returns, which tells it that the socket listens."""
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)  # runs inherit 0 as their stdin


if __name__ == "__main__":
    main()
