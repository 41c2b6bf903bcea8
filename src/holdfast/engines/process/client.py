"""Speaks with the shim of a directory, and starts one where none is running."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.engines.process.shim import record, records
from holdfast.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHIM = Path(__file__).parent / "shim" / "__main__.py"
_LONGEST_ADDRESS = 100
"""Bytes of a socket's path that every system takes."""
_CONNECT_DEADLINE_S = 20.0
_GREETING_S = 3.0
"""How long a shim may take to say who it is; a new one first looks for what the last one left."""
_RESUMED_S = 5.0
"""How long one may take that was told to go on, in case somebody suspended it; then it is replaced."""
_RETRY_S = 0.02
_SEND_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 0.25
_CHUNK = 1 << 18
_log = logging.getLogger(__name__)


class ShimConnection:
    """One connection to a shim; broken for good after the first error."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        self._sock = sock
        self._received = bytearray()
        sock.settimeout(_LOOK_EVERY_S)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; a shim reads at once, so this does not wait unless it hangs.

        Raises:
            OSError: The shim is gone or hangs; whoever receives sees the end, too.
        """
        left = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        until = time.monotonic() + _SEND_TIMEOUT_S
        while left:
            try:
                left = left[self._sock.send(left) :]
            except OSError as error:
                if not isinstance(error, TimeoutError) or time.monotonic() > until:
                    self.shut()
                    raise

    def receive(self) -> Iterator[dict[str, Any] | None]:
        """Yield messages until the connection ends; ``None`` whenever there was none for a while."""
        while True:
            line, newline, rest = self._received.partition(b"\n")
            if newline:
                self._received = rest
                yield json.loads(line)
                continue
            try:
                chunk = self._sock.recv(_CHUNK)
            except TimeoutError:
                yield None
                continue
            except OSError:
                return
            if not chunk:
                return
            self._received += chunk

    def greeting(self, within_s: float) -> dict[str, Any] | None:
        """Wait for the first message.

        Returns:
            ``None`` where the connection ended without one.

        Raises:
            TimeoutError: There was none in time.
        """
        until = time.monotonic() + within_s
        for message in self.receive():
            if message is not None:
                return message
            if time.monotonic() > until:
                raise TimeoutError
        return None

    def peer(self) -> int:
        """Return the process number of the shim, 0 where the system does not tell."""
        if not hasattr(socket, "SO_PEERCRED"):
            return 0
        pid, _, _ = struct.unpack("3i", self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)

    def shut(self) -> None:
        """End both directions, which wakes whoever receives."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()


Greeted: TypeAlias = tuple[ShimConnection, dict[str, Any]]


def connect(directory: Path, *, environment: Mapping[str, str], limits: str, idle_s: float) -> Greeted:
    """Connect to the directory's shim, starting one if need be.

    Args:
        directory: Where its socket and journal are.
        environment: What a shim that is started gets itself.
        limits: ``auto``, or ``rss`` to watch memory instead of using control groups.
        idle_s: How long a shim without clients and runs stays.

    Returns:
        The connection, and the first message: who answers, and every run it has.

    Raises:
        EngineError: None answers, and none can be started.
    """
    deadline = time.monotonic() + _CONNECT_DEADLINE_S
    while True:
        connection = _try_connect(directory)
        if connection is not None:
            first = _greeted(connection, directory)
            if first is not None:
                return connection, first
            connection.close()  # without a word: it was just about to leave
        if time.monotonic() > deadline:
            msg = f"the process that holds the programs of {directory} does not answer"
            raise EngineError(msg, hint=f"see {directory / records.ERRORS}")
        _start_shim(directory, environment, [limits, str(idle_s)])


def _greeted(connection: ShimConnection, directory: Path) -> dict[str, Any] | None:
    """Wait for a shim's greeting; one that hangs is sent SIGCONT, and then replaced: its programs continue.

    Raises:
        EngineError: Its version is not compatible, or it hangs and cannot be replaced.
    """
    try:
        first = connection.greeting(_GREETING_S)
    except TimeoutError:
        first = _awakened(connection, directory)
    if first is not None and first["hello"]["protocol"] != records.PROTOCOL:
        connection.close()
        if not first["runs"]:
            return None  # it exits once nobody is connected, and ours starts
        msg = f"the process that holds the programs of {directory} is of another version of Holdfast"
        raise EngineError(msg, hint="let its programs end under that version first")
    return first


def _awakened(connection: ShimConnection, directory: Path) -> dict[str, Any] | None:
    pid = connection.peer()
    _log.warning("the process %d that holds the programs of %s does not answer; waking it", pid, directory)
    signal_shim(pid, signal.SIGCONT)
    try:
        return connection.greeting(_RESUMED_S)
    except TimeoutError:
        connection.close()
    if not pid:
        msg = f"the process that holds the programs of {directory} does not answer"
        raise EngineError(msg, hint=f"see {directory / records.ERRORS}")
    _log.warning("the process %d still does not answer; replacing it", pid)
    signal_shim(pid, signal.SIGKILL)
    return None


def signal_shim(pid: int, number: signal.Signals) -> None:
    """Signal a shim, if it is still there and ours."""
    if pid > 0:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            return


def is_in_use(directory: Path) -> bool:
    """Tell whether a process of ours holds runs of a directory; changes nothing there."""
    return any(map(record.is_held, [directory / records.LOCK, *(directory / records.SUPERVISORS).glob("*.record")]))


def require_compatible(directory: Path) -> None:
    """Make sure that the holder of a directory's runs, if any, is compatible.

    Raises:
        EngineError: It is of another version, or does not answer.
    """
    connection = _try_connect(directory) if is_in_use(directory) else None
    if connection is not None:
        try:
            _greeted(connection, directory)
        finally:
            connection.close()


def _try_connect(directory: Path) -> ShimConnection | None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_SEND_TIMEOUT_S)
    path = os.fspath(directory / records.SOCKET)
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
        msg = f"cannot connect to the process that holds the programs of {directory}: {error.strerror or error}"
        raise EngineError(msg) from error
    return ShimConnection(sock)


def _connect_deep(sock: socket.socket, directory: Path) -> None:
    """Connect where the path is longer than an address may be, through an open directory, which has a short name."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{fd}/{records.SOCKET}")
    finally:
        os.close(fd)


def _start_shim(directory: Path, environment: Mapping[str, str], arguments: list[str]) -> None:
    """Start a shim; it returns when it listens, or when another one holds the directory."""
    command = [sys.executable, "-I", "-S", os.fspath(_SHIM), os.fspath(directory), *arguments]
    try:
        log = os.open(directory / records.ERRORS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        msg = f"cannot use {directory} for runs: {error.strerror}"
        raise EngineError(msg) from error
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
        msg = f"the process that holds the programs of {directory} could not be started: {error}"
        raise EngineError(msg) from error
    finally:
        os.close(log)
    if done.returncode:
        msg = f"the process that holds the programs of {directory} could not be started"
        raise EngineError(msg, hint=f"see {directory / records.ERRORS}")
    time.sleep(_RETRY_S if not (directory / records.SOCKET).exists() else 0)
