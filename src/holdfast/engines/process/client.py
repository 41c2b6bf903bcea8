"""Connects to the shim of a directory, and starts one if none is running."""

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
"""The length of a socket's path, in bytes, that every system accepts."""
_CONNECT_DEADLINE_S = 20.0
_GREETING_S = 3.0
"""Seconds that a shim may take for its greeting; a new one first recovers what the last one left."""
_RESUMED_S = 5.0
"""Seconds for a shim that was resumed, in case it had been suspended; then it is replaced."""
_RETRY_S = 0.02
_SEND_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 0.25
_CHUNK = 1 << 18
_log = logging.getLogger(__name__)


class ShimConnection:
    """One connection to a shim; unusable after the first error."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = bytearray()
        sock.settimeout(_LOOK_EVERY_S)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. A shim reads at once, so this waits only if it hangs.

        Raises:
            OSError: The shim is gone or hangs; the receiver sees the end, too.
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
        """Yield messages until the connection ends; ``None`` whenever none arrived for a while."""
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
            ``None`` if the connection ended without one.

        Raises:
            TimeoutError: None arrived in time.
        """
        until = time.monotonic() + within_s
        for message in self.receive():
            if message is not None:
                return message
            if time.monotonic() > until:
                raise TimeoutError
        return None

    def peer(self) -> int:
        """Return the shim's process number, or 0 if the system does not tell."""
        if not hasattr(socket, "SO_PEERCRED"):
            return 0
        pid, _, _ = struct.unpack("3i", self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)

    def shut(self) -> None:
        """Shut down both directions, which wakes the receiver."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()


Greeted: TypeAlias = tuple[ShimConnection, dict[str, Any]]


def connect(directory: Path, *, environment: Mapping[str, str], limits: str, idle_s: float) -> Greeted:
    """Connect to the directory's shim, starting one if needed.

    Args:
        directory: The directory of its socket and journal.
        environment: The environment of a shim that is started.
        limits: ``auto``, or ``rss`` to watch memory instead of using control groups.
        idle_s: Seconds that a shim without clients and runs stays.

    Returns:
        The connection and the greeting: who answers, and all its runs.

    Raises:
        EngineError: No shim answers, and none can be started.
    """
    deadline = time.monotonic() + _CONNECT_DEADLINE_S
    while True:
        connection = _try_connect(directory)
        if connection is not None:
            first = _greeted(connection, directory)
            if first is not None:
                return connection, first
            # The shim was shutting down and closed without replying; this is not an error.
            connection.close()
        if time.monotonic() > deadline:
            msg = f"the process that holds the programs of {directory} does not answer"
            raise EngineError(msg, hint=f"see {directory / records.ERRORS}")
        _start_shim(directory, environment, [limits, str(idle_s)])


def _greeted(connection: ShimConnection, directory: Path) -> dict[str, Any] | None:
    """Wait for a shim's greeting; a hanging shim gets SIGCONT, and is then replaced while its programs continue.

    Raises:
        EngineError: Its version is incompatible, or it hangs and cannot be replaced.
    """
    try:
        first = connection.greeting(_GREETING_S)
    except TimeoutError:
        first = _awakened(connection, directory)
    if first is not None and first["hello"]["protocol"] != records.PROTOCOL:
        connection.close()
        if not first["runs"]:
            return None  # It exits once nobody is connected; then ours starts.
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
    """Signal a shim, if it still exists and is ours."""
    if pid > 0:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            return


def is_in_use(directory: Path) -> bool:
    """Whether a process of ours holds runs of a directory; changes nothing there."""
    return any(map(record.is_held, [directory / records.LOCK, *(directory / records.SUPERVISORS).glob("*.record")]))


def require_compatible(directory: Path) -> None:
    """Make sure that the shim of a directory, if there is one, is compatible.

    Raises:
        EngineError: It has another version, or does not answer.
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
    """Connect to a path that is too long for an address, through an open directory with a short name."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{fd}/{records.SOCKET}")
    finally:
        os.close(fd)


def _start_shim(directory: Path, environment: Mapping[str, str], arguments: list[str]) -> None:
    """Start a shim; returns when it listens, or when another one holds the directory."""
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
