"""The sockets of a server: its address, the Unix socket for its own machine, and the port for programs of jobs.

A lock beside the Unix socket says who listens there, so that only a socket that nobody uses any more is replaced.

If the server uses TLS or serves other machines, programs of jobs have a port of their own, which only this machine can
reach, without TLS. A program learns the port when it starts, and goes on when the server is restarted. So the port is
stored in the data directory, and the shim holds it as long as it runs: another account that got the port while the
server is away would receive the tokens of programs.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
import socket
import stat
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, trusted_folder
from holdfast.app.entrance import network
from holdfast.client.unix import address_of, connect
from holdfast.domain.record import Struct
from holdfast.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import uvicorn

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.settings import Settings

_ELSEWHERE = "choose a socket in a folder of your own"
_PROBE_S = 1.0
_QUEUE = 128
HOST = "127.0.0.1"
_FILE = "jobs-port"
_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to outgoing connections, so that none gets the port while the server is away."""
_TRIES = 50
_QUEUE = 128
_ANSWER_S = 1.0
_log = logging.getLogger(__name__)


class Listening(Struct, frozen=True):
    """Where callers come in."""

    sockets: list[socket.socket]
    url: str
    """For people."""
    own_url: str
    """For commands on the data directory, which need not know the server's name in its certificate."""
    jobs_url: str
    """For programs of jobs, which need not trust a certificate, whatever account they run as."""
    publish: Callable[[], None]
    """Makes the Unix socket visible, once everything is ready."""
    for_jobs: socket.socket | None = None
    """The socket for programs of jobs only, if there is one."""


def listening(stack: ExitStack, config: uvicorn.Config, settings: Settings, directory: DataDir) -> Listening:
    """Listen; the stack closes what is not handed to a server.

    Raises:
        Unavailable: The port or the Unix socket is taken.
        Refused: Something else is in the place of the Unix socket.
    """
    bound, host = _bound(config), config.host
    is_beyond, is_secure = network.is_beyond(host), settings.tls_cert is not None
    scheme = "https" if is_secure else "http"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"
    path = settings.socket or (directory.path / "holdfast.sock" if is_beyond or is_secure else None)
    if path is None:
        return Listening([bound], url, url, url, lambda: None)
    everybody = settings.run_as == "submitter" and settings.socket is not None
    local = stack.enter_context(open_unix_socket(path, everybody=everybody))
    sockets = [bound, local.listener]
    if not (is_beyond or is_secure):
        return Listening(sockets, url, url, url, local.publish)
    for_jobs = stack.enter_context(open_jobs_port(directory))
    jobs_url = f"http://{HOST}:{for_jobs.getsockname()[1]}"
    return Listening([*sockets, for_jobs], url, address_of(path), jobs_url, local.publish, for_jobs)


def _bound(config: uvicorn.Config) -> socket.socket:
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        msg = f"port {config.port} on {config.host} is taken"
        raise Unavailable(msg, hint="choose another with --port, or 0 for any free one") from error
    # Clients that find the address from now on wait instead of being refused.
    bound.listen(config.backlog)
    return bound


class UnixSocket:
    """A socket that listens under another name until it is published."""

    def __init__(self, listener: socket.socket, folder: int, name: str) -> None:
        self.listener = listener
        self._folder, self._name = folder, name
        self._own = os.stat(_fresh(name), dir_fd=folder, follow_symlinks=False)

    def publish(self) -> None:
        """Give the socket its name, in place of one that nobody listens on any more."""
        os.replace(_fresh(self._name), self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self) -> None:
        """Remove the name, unless it is another socket's by now."""
        for name in (_fresh(self._name), self._name):
            with suppress(OSError):
                if os.path.samestat(self._own, os.stat(name, dir_fd=self._folder, follow_symlinks=False)):
                    os.unlink(name, dir_fd=self._folder)


@contextmanager
def open_unix_socket(path: Path, *, everybody: bool = False) -> Iterator[UnixSocket]:
    """Listen on a socket for this account only, or for everybody, for as long as the context lasts.

    Raises:
        Refused: Something else is there, or others could replace it.
        Unavailable: A server listens there, or none can.
    """
    path = path.absolute()
    with ExitStack() as stack:
        try:
            listener = _opened(stack, path, everybody=everybody)
        except OSError as error:
            message = f"cannot listen on {path}: {error.strerror or error}"
            raise Unavailable(message, hint="choose another with --socket or HOLDFAST_SOCKET") from error
        yield listener


def _opened(stack: ExitStack, path: Path, *, everybody: bool) -> UnixSocket:
    path.parent.mkdir(mode=0o755 if everybody else 0o700, exist_ok=True)
    folder = stack.enter_context(trusted_folder(path.parent, otherwise=_ELSEWHERE))
    beside = path.with_name(f"{path.name}.lock")
    lock = open_trusted(beside, os.O_RDWR | os.O_CREAT, folder=folder, otherwise=_ELSEWHERE)
    stack.callback(os.close, lock)
    _require_free(path, folder, lock)
    listener = stack.enter_context(_listener(path.name, folder, 0o666 if everybody else 0o600))
    unix_socket = UnixSocket(listener, folder, path.name)
    stack.callback(unix_socket.remove)
    return unix_socket


def _require_free(path: Path, folder: int, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _taken(path) from error
    try:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        message = f"{path} exists and is not a socket"
        raise Refused(message, hint="choose another with --socket or HOLDFAST_SOCKET, or remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            connect(probe, str(path))
        except ConnectionRefusedError:
            return  # nobody listens any more
        except (TimeoutError, BlockingIOError):
            pass  # a busy server listens
    raise _taken(path)


def _taken(path: Path) -> Unavailable:
    hint = "choose another with --socket or HOLDFAST_SOCKET, or stop that one: holdfast down"
    return Unavailable(f"another server listens on {path}", hint=hint)


@contextmanager
def _listener(name: str, folder: int, mode: int) -> Iterator[socket.socket]:
    """Bind by the folder's descriptor, as the whole path may be too long for an address."""
    fresh = _fresh(name)
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{fresh}")
        # Nobody else can write in the folder, and nobody can connect before listen.
        os.chmod(fresh, mode, dir_fd=folder)
        listener.listen(_QUEUE)
        yield listener


def _fresh(name: str) -> str:
    return f"{name}.new"


def open_jobs_port(directory: DataDir) -> socket.socket:
    """Listen on the port that the last server of a data directory had, or on another if that is taken.

    Raises:
        Unavailable: No port is free, or it cannot be stored.
        Refused: The file that stores it is another user's, or others can write it.
    """
    path = directory.path / _FILE
    try:
        with trusted_folder(directory.path) as folder:
            kept = _kept(path, folder)
            listener = _bound_for_jobs(kept)
            _keep(path, folder, listener.getsockname()[1])
    except OSError as error:
        msg = f"there is no port for programs of jobs, or {path} cannot be used: {error.strerror or error}"
        raise Unavailable(msg) from error
    if kept not in {None, listener.getsockname()[1]}:
        _log.warning("port %d is taken: programs of jobs that started before do not find this server", kept)
    return listener


def kept_port(directory: DataDir) -> int:
    """Return the port that the last server of a data directory had; 0 if there was none or it cannot be read."""
    try:
        with trusted_folder(directory.path) as folder:
            return _kept(directory.path / _FILE, folder) or 0
    except (OSError, Refused):
        return 0


def _bound_for_jobs(kept: int | None) -> socket.socket:
    if kept is not None and not _answers(kept):
        with suppress(OSError):
            return _listening(kept)
    for port in random.sample(_PORTS, _TRIES):
        with suppress(OSError):
            socket.create_server((HOST, port)).close()  # fails if somebody holds it
            return _listening(port)
    return _listening(0)


def _answers(port: int) -> bool:
    """Whether somebody listens there: another server of this account would share the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        return connection.connect_ex((HOST, port)) != errno.ECONNREFUSED


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # also where connections of the last server linger
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # also where the shim holds it
        listener.bind((HOST, port))
        listener.listen(_QUEUE)
    except OSError:
        listener.close()
        raise
    return listener


def _kept(path: Path, folder: int) -> int | None:
    try:
        with os.fdopen(open_trusted(path, os.O_RDONLY, folder=folder), errors="replace") as file:
            port = int(file.read())
    except (FileNotFoundError, ValueError):
        return None
    return port if port in _PORTS else None


def _keep(path: Path, folder: int, port: int) -> None:
    fresh = path.with_suffix(".new")
    fd = open_trusted(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder=folder)
    with os.fdopen(fd, "w") as file:
        file.write(f"{port}\n")
    os.replace(fresh.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
