"""The port of the programs of jobs, where others come in by TLS or from elsewhere: for this machine alone, in clear.

A program goes on when its server is restarted, and was told the port as it began. So it is kept in the data directory.
"""

from __future__ import annotations

import logging
import os
import random
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, trusted_folder
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir

HOST = "127.0.0.1"
_FILE = "jobs-port"
_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to whoever connects, so that none of them has it while the server is away."""
_TRIES = 50
_QUEUE = 128
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


def _bound(kept: int | None) -> socket.socket:
    tried = random.sample(_PORTS, _TRIES)
    for port in tried if kept is None else (kept, *tried):
        with suppress(OSError):
            return _listening(port)
    return _listening(0)


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also where connections of the last server linger
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
