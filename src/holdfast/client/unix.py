"""The way to a server by a Unix socket: each side knows by the operating system who is at the other end.

So no token is sent, and the client makes sure that it speaks to its own server, or to root's.
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
"""How the address of a server begins that is reached by a socket; the path follows as it is."""
_LONGEST_ADDRESS = 100
"""Bytes of a socket's path that every system takes."""
_CREDENTIALS = struct.Struct("iII")


def address_of(path: str | os.PathLike[str]) -> str:
    """Return the address of a server that listens on a socket."""
    return f"{SCHEME}{Path(path).absolute()}"


def peer_of(connected: socket.socket) -> tuple[int, int]:
    """Return the process number and the user number of the other end, as they were when it connected or listened."""
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return pid, uid


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect, and look who listens.

        Raises:
            Refused: The socket lets only others in, or another user listens there.
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
        """Refuse another user's server: what it is sent, it could use. Root may ask anybody's."""
        uid, caller = peer_of(connected)[1], os.geteuid()
        if caller and uid not in {caller, 0}:
            message = f"{self._path} is another user's, {_named(uid)}, who could take over jobs and secrets"
            raise Refused(message, hint="ask a server of your own or of root, or name that one in HOLDFAST_URL")


def connect(connection: socket.socket, path: str) -> None:
    """Connect to a path that may be longer than an address: through its folder, which has a short name once it is open.

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
