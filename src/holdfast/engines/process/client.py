"""Speaks with the keeper of a directory, and starts one where there is none; leaves meaning to ``engine``."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.engines.process.keeper.records import PROTOCOL
from holdfast.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KEEPER = Path(__file__).parent / "keeper" / "__main__.py"
_SOCKET = "keeper.sock"
_LONGEST_ADDRESS = 100
"""Bytes of a socket's path that every system takes."""
_CONNECT_DEADLINE_S = 15.0
_RETRY_S = 0.02
_SEND_TIMEOUT_S = 10.0
_CHUNK = 1 << 18


class Connection:
    """One connection to the keeper; broken for good after the first error."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        self._sock = sock
        self._received = bytearray()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; a keeper reads at once, so this does not wait unless it is stopped.

        Raises:
            OSError: The keeper is gone; whoever receives sees the end, too.
        """
        try:
            self._sock.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError:
            self.shut()
            raise

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield messages until the connection ends."""
        while True:
            line, newline, rest = self._received.partition(b"\n")
            if newline:
                self._received = rest
                yield json.loads(line)
                continue
            try:
                chunk = self._sock.recv(_CHUNK)
            except TimeoutError:
                continue
            except OSError:
                return
            if not chunk:
                return
            self._received += chunk

    def shut(self) -> None:
        """End both directions, which wakes whoever receives."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        """Let go of the socket."""
        self._sock.close()


Greeted: TypeAlias = tuple[Connection, dict[str, Any]]


def connect(directory: Path, *, environment: Mapping[str, str], limits: str, idle_s: float) -> Greeted:
    """Connect to the directory's keeper, starting one if need be.

    Args:
        directory: Where its socket and journal are.
        environment: What a keeper that is started gets itself.
        limits: ``auto``, or ``rss`` to watch memory instead of using cgroups.
        idle_s: How long a keeper without clients and runs stays.

    Returns:
        The connection, and the first message: who answers, and every run it has.

    Raises:
        EngineError: None answers, and none can be started.
    """
    deadline = time.monotonic() + _CONNECT_DEADLINE_S
    while True:
        sock = _try_connect(directory)
        if sock is not None:
            connection = Connection(sock)
            first = _greeting(connection, directory)
            if first is not None:
                return connection, first
            connection.close()  # without a word: it was just about to leave
        if time.monotonic() > deadline:
            msg = f"the keeper of {directory} does not answer"
            raise EngineError(msg, hint=f"see {directory / 'keeper.log'}")
        _start_keeper(directory, environment, [limits, str(idle_s)])


def is_in_use(directory: Path) -> bool:
    """Tell whether a process of ours holds the runs of a directory; changes nothing there."""
    try:
        with (directory / "keeper.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def require_compatible(directory: Path) -> None:
    """Make sure that whoever holds the runs of a directory can be spoken with; nobody may hold them.

    Raises:
        EngineError: It is of another version, or does not answer.
    """
    sock = _try_connect(directory) if is_in_use(directory) else None
    if sock is not None:
        connection = Connection(sock)
        try:
            _greeting(connection, directory)
        finally:
            connection.close()


def _greeting(connection: Connection, directory: Path) -> dict[str, Any] | None:
    first = next(connection.receive(), None)
    if first is not None and first["hello"]["protocol"] != PROTOCOL:
        msg = f"the keeper of {directory} is of another version of Holdfast"
        raise EngineError(msg, hint="let its runs end under that version first")
    return first


def _try_connect(directory: Path) -> socket.socket | None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_SEND_TIMEOUT_S)
    path = os.fspath(directory / _SOCKET)
    try:
        if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
            sock.connect(path)
        else:
            _connect_deep(sock, directory)
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except OSError as error:
        sock.close()
        msg = f"cannot connect to the keeper of {directory}: {error.strerror or error}"
        raise EngineError(msg) from error
    return sock


def _connect_deep(sock: socket.socket, directory: Path) -> None:
    """Connect where the path is longer than an address may be: by way of an open directory, which has a short name."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{fd}/{_SOCKET}")
    finally:
        os.close(fd)


def _start_keeper(directory: Path, environment: Mapping[str, str], arguments: list[str]) -> None:
    """Start a keeper; it returns when it listens, or when another one holds the directory."""
    command = [sys.executable, "-I", "-S", os.fspath(_KEEPER), os.fspath(directory), *arguments]
    log = os.open(directory / "keeper.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and file
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
            timeout=_CONNECT_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"the keeper of {directory} could not be started: {error}"
        raise EngineError(msg) from error
    finally:
        os.close(log)
    if done.returncode:
        msg = f"the keeper of {directory} could not be started"
        raise EngineError(msg, hint=f"see {directory / 'keeper.log'}")
    time.sleep(_RETRY_S if not (directory / _SOCKET).exists() else 0)
