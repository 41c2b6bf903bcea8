"""Finds the server that commands ask: the one that a setting names, the data directory's, or the machine's."""

from __future__ import annotations

import os
import stat
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.data.datadir import DataDir
from holdfast.client.unix import address_of
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.app.reach import ServerReach

SYSTEM_SOCKET = Path("/run/holdfast/holdfast.sock")
"""Where the server of a machine listens for all its users."""


class Discovery(Enum):
    """How a server was found."""

    NAMED = auto()
    """A setting names it."""
    DIRECTORY = auto()
    """It left its address in the data directory."""
    SYSTEM = auto()
    """It listens on the socket of the machine's server."""


class Whereabouts(Struct, frozen=True):
    """Where a server is, and how to get in."""

    url: str
    token: str | None
    origin: Discovery
    pid: int | None = None


def find(settings: ServerReach) -> Whereabouts | None:
    """Find the server; without one, return ``None``, and a command opens the data directory in its own process.

    If a data directory is named, neither the current context nor the machine's server takes its place.

    Raises:
        Refused: The data directory or what a server left there is another user's, or others can write it.
        InvalidSetting: The token that goes with the named server cannot be read.
    """
    if settings.url:
        from holdfast.app.data.token import given_token  # only here: most commands find a server by its directory

        return Whereabouts(settings.url, given_token(settings), Discovery.NAMED)
    if settings.socket:
        return Whereabouts(address_of(settings.socket), None, Discovery.NAMED)
    names_directory = "data" in settings.model_fields_set
    if settings.context or not names_directory:
        from holdfast.app.data.contexts import chosen  # only here: a named directory needs none of it

        context = chosen(settings.context)
        if context is not None:
            return Whereabouts(*context, Discovery.NAMED)
    server = DataDir(settings.data).server() if _is_there(settings.data) else None
    if server is not None:
        return Whereabouts(server.url, server.token, Discovery.DIRECTORY, server.pid)
    if not names_directory and _lets_in(SYSTEM_SOCKET):
        return Whereabouts(address_of(SYSTEM_SOCKET), None, Discovery.SYSTEM)
    return None


def _is_there(directory: Path) -> bool:
    """Whether a directory exists, without creating it."""
    try:
        return directory.is_dir()
    except OSError:
        return False


def _lets_in(path: Path) -> bool:
    """Whether there is a socket of root's or of the caller's that the caller may connect to."""
    try:
        status = path.lstat()
    except OSError:
        return False
    caller = os.geteuid()
    is_trusted = not caller or status.st_uid in {0, caller}
    return stat.S_ISSOCK(status.st_mode) and is_trusted and os.access(path, os.W_OK)
