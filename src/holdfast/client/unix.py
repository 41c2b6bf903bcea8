"""Reaches a server by a Unix socket: the operating system tells each side who is at the other end.

So no token is sent, and the client makes sure that the server is its own user's or root's.
"""

from __future__ import annotations

import http.client
import os
import pwd
import socket
import struct
from pathlib import Path

from holdfast.errors import Refused

SCHEME = "unix://"
"""The prefix of the address of a server with a socket; the path follows as it is."""
_LONGEST_ADDRESS = 100
"""The length of a socket's path, in bytes, that every system accepts."""
_CREDENTIALS = struct.Struct("iII")


def address_of(path: str | os.PathLike[str]) -> str:
    """Return the address of a server that listens on a socket."""
    return f"{SCHEME}{Path(path).absolute()}"


def peer_of(connected: socket.socket) -> tuple[int, int]:
    """Return the process and user number of the other end, as of when it connected or listened."""
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return pid, uid


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect, and check who listens.

        Raises:
            Refused: The socket admits only other users, or another user listens there.
            OSError: Nobody listens there.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            connect(connection, self._path)
            self._require_trusted(connection)
        except PermissionError as error:
            connection.close()
            message = f"the server at {self._path} lets only its own account in"
            raise Refused(message, hint="ask as that account, or set HOLDFAST_URL and HOLDFAST_TOKEN") from error
        except BaseException:
            connection.close()
            raise
        self.sock = connection

    def _require_trusted(self, connected: socket.socket) -> None:
        """Refuse another user's server, which could use what it is sent. Root may ask anybody's."""
        uid, caller = peer_of(connected)[1], os.geteuid()
        if caller and uid not in {caller, 0}:
            message = f"{self._path} is another user's, {_named(uid)}, who could take over jobs and secrets"
            raise Refused(message, hint="ask a server of your own or of root, or name that one in HOLDFAST_URL")


def connect(connection: socket.socket, path: str) -> None:
    """Connect to a path that may be too long for an address, through its open directory, which has a short name.

    Raises:
        OSError: Nobody listens there.
    """
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        connection.connect(path)
        return
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)


def _named(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"
