"""The Unix socket of a server.

Who listens there is known by a lock beside it, so that only what nobody uses any more is replaced.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, trusted_folder
from holdfast.client.unix import connect
from holdfast.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ELSEWHERE = "choose a socket in a folder of your own"
_PROBE_S = 1.0
_QUEUE = 128


class UnixSocket:
    """A socket that listens under another name until it is published."""

    def __init__(self, listener: socket.socket, folder: int, name: str) -> None:
        """Take over what ``listening`` made."""
        self.listener = listener
        self._folder, self._name = folder, name
        self._own = os.stat(_fresh(name), dir_fd=folder, follow_symlinks=False)

    def publish(self) -> None:
        """Give it its name, in place of one that nobody listens on any more."""
        os.replace(_fresh(self._name), self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self) -> None:
        """Take the name away, unless another's is in its place."""
        for name in (_fresh(self._name), self._name):
            with suppress(OSError):
                if os.path.samestat(self._own, os.stat(name, dir_fd=self._folder, follow_symlinks=False)):
                    os.unlink(name, dir_fd=self._folder)


@contextmanager
def listening(path: Path, *, everybody: bool = False) -> Iterator[UnixSocket]:
    """Listen on a socket that only this account can use, or everybody, for as long as the context lasts.

    Raises:
        Refused: Something else is there, or others could replace it.
        Unavailable: A server listens there, or none can.
    """
    path = path.absolute()
    with ExitStack() as stack:
        try:
            made = _opened(stack, path, everybody=everybody)
        except OSError as error:
            message = f"cannot listen on {path}: {error.strerror or error}"
            raise Unavailable(message, hint="choose another with --socket or HOLDFAST_SOCKET") from error
        yield made


def _opened(stack: ExitStack, path: Path, *, everybody: bool) -> UnixSocket:
    path.parent.mkdir(mode=0o755 if everybody else 0o700, exist_ok=True)
    folder = stack.enter_context(trusted_folder(path.parent, otherwise=_ELSEWHERE))
    beside = path.with_name(f"{path.name}.lock")
    lock = open_trusted(beside, os.O_RDWR | os.O_CREAT, folder=folder, otherwise=_ELSEWHERE)
    stack.callback(os.close, lock)
    _require_free(path, folder, lock)
    listener = stack.enter_context(_listener(path.name, folder, 0o666 if everybody else 0o600))
    made = UnixSocket(listener, folder, path.name)
    stack.callback(made.remove)
    return made


def _require_free(path: Path, folder: int, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _taken(path) from error
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        message = f"{path} is there, and is no socket"
        raise Refused(message, hint="choose another with --socket or HOLDFAST_SOCKET, or remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            connect(probe, str(path))
        except ConnectionRefusedError:
            return  # whoever listened is dead
        except (TimeoutError, BlockingIOError):
            pass  # it is too busy
    raise _taken(path)


def _taken(path: Path) -> Unavailable:
    hint = "choose another with --socket or HOLDFAST_SOCKET, or stop that one: holdfast down"
    return Unavailable(f"another server listens on {path}", hint=hint)


@contextmanager
def _listener(name: str, folder: int, mode: int) -> Iterator[socket.socket]:
    """Bind by the folder's short name, as the whole may be longer than an address; only then others can connect."""
    fresh = _fresh(name)
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{fresh}")
        os.chmod(fresh, mode, dir_fd=folder)  # nobody else can write in the folder, and nobody can connect yet
        listener.listen(_QUEUE)
        yield listener


def _fresh(name: str) -> str:
    return f"{name}.new"
