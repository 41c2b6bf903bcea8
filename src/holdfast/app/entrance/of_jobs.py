"""The port of the programs of jobs, where others come in by TLS or from elsewhere: for this machine alone, in clear.

A program goes on when its server is restarted, and was told the port as it began. So it is kept in the data directory,
and the shim holds it as long as there is one: another account that had the port while the server is away would be shown
the tokens of programs.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, trusted_folder
from holdfast.errors import Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir

HOST = "127.0.0.1"
_FILE = "jobs-port"
_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to whoever connects, so that none of them has it while the server is away."""
_TRIES = 50
_QUEUE = 128
_ANSWER_S = 1.0
_log = logging.getLogger(__name__)


def listening(directory: DataDir) -> socket.socket:
    """Listen on the port that the last server of a data directory had, or on another where that is taken.

    Raises:
        Unavailable: None is free, or it cannot be kept.
        Refused: The file in which it is kept is another user's, or others can write it.
    """
    path = directory.path / _FILE
    try:
        with trusted_folder(directory.path) as folder:
            kept = _kept(path, folder)
            made = _bound(kept)
            _keep(path, folder, made.getsockname()[1])
    except OSError as error:
        msg = f"there is no port for programs of jobs, or {path} cannot be used: {error.strerror or error}"
        raise Unavailable(msg) from error
    if kept not in {None, made.getsockname()[1]}:
        _log.warning("port %d is taken: programs of jobs that began before do not find this server", kept)
    return made


def kept_port(directory: DataDir) -> int:
    """Return the port that the last server of a data directory had; 0 if there was none, or it cannot be known."""
    try:
        with trusted_folder(directory.path) as folder:
            return _kept(directory.path / _FILE, folder) or 0
    except (OSError, Refused):
        return 0


def _bound(kept: int | None) -> socket.socket:
    if kept is not None and not _answers(kept):
        with suppress(OSError):
            return _listening(kept)
    for port in random.sample(_PORTS, _TRIES):
        with suppress(OSError):
            socket.create_server((HOST, port)).close()  # which one that somebody holds refuses
            return _listening(port)
    return _listening(0)


def _answers(port: int) -> bool:
    """Whether somebody listens already, who may be another server of this account and would share the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(_ANSWER_S)
        return made.connect_ex((HOST, port)) != errno.ECONNREFUSED


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also where connections of the last server linger
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # also where the shim holds it
        made.bind((HOST, port))
        made.listen(_QUEUE)
    except OSError:
        made.close()
        raise
    return made


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
