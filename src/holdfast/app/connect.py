"""Connects to the server that is found, or without one opens the data directory in this process.

The result is always a ``Client`` that speaks the public API.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app import whereabouts
from holdfast.app.data.datadir import DataDir
from holdfast.app.reach import ServerReach, read_reach, without_token
from holdfast.app.whereabouts import Discovery
from holdfast.client import Client
from holdfast.errors import Conflict, InvalidSetting, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.app.settings import Settings
    from holdfast.app.whereabouts import Whereabouts

_opened: list[tuple[Path, int]] = []
"""Data directories that are open, each with the process that opened it, which this one may be a fork of."""


@contextmanager
def connect(
    *,
    drive: bool = False,
    places: bool = True,
    settings: ServerReach | None = None,
    waits: Callable[[str], None] | None = None,
    remark: Callable[[str], None] | None = None,
    token_file: str | None = None,
) -> Iterator[Client]:
    """Open a client for as long as the context lasts.

    Args:
        drive: Without a server, also run the jobs of the data directory in this process, as soon as no other process
            does.
        places: Whether to start waiting jobs; if not, only running jobs are looked after.
        settings: Where to look; by default the environment's.
        remark: Called if the server is older or newer than this program.
        waits: Called when a server stops answering, and when it answers again; meanwhile calls wait for it.
        token_file: A file with the token to send, whatever the settings say.

    Yields:
        A client.

    Raises:
        Conflict: This process was forked from one that has the data directory open.
        InvalidSetting: The file holds no token, or no server takes one.
        Refused: The file is another user's, or others can read or write it.
    """
    settings = settings or read_reach()
    server = whereabouts.find(settings if token_file is None else without_token(settings))
    shown = None if token_file is None else _token_for(server, token_file)
    if server is not None:
        with Client(server.url, shown or server.token) as client:
            if server.origin is Discovery.DIRECTORY:
                client.connection.find = partial(_found, DataDir(settings.data), shown)
            client.connection.has_answered = server.origin is not Discovery.NAMED
            yield _ready(client, settings, waits, remark)
        return
    directory = DataDir(settings.data)
    with _holding(directory.path) as stack:
        yield _in_process(stack, _all_of(settings), directory, drive=drive, places=places)


@contextmanager
def _holding(path: Path) -> Iterator[ExitStack]:
    """Keep a data directory open in this process; a process forked meanwhile closes nothing of it."""
    _refuse_inherited(path)
    entry = path, os.getpid()
    _opened.append(entry)
    with ExitStack() as stack:
        try:
            yield stack
        finally:
            if os.getpid() == entry[1]:
                _opened.remove(entry)
            else:
                stack.pop_all()


def _refuse_inherited(path: Path) -> None:
    """Refuse a directory whose database was open at the fork: two processes cannot share SQLite's locks."""
    if any(process != os.getpid() for opened_path, process in _opened if opened_path == path):
        message = f"this process was forked from one that has {path} open, and cannot use its database"
        hint = "start a server before: holdfast up --daemon; or start processes with the method spawn or forkserver"
        raise Conflict(message, hint=hint)


def _ready(
    client: Client, settings: ServerReach, waits: Callable[[str], None] | None, remark: Callable[[str], None] | None
) -> Client:
    client.connection.patience_s = settings.patience
    if remark is not None:
        client.connection.remark = remark
    if waits is not None:
        client.connection.be_patient(waits)
    return client


def _found(directory: DataDir, shown: str | None) -> tuple[str, str] | None:
    server = directory.server()
    return None if server is None else (server.url, shown or server.token)


def _token_for(server: Whereabouts | None, token_file: str) -> str:
    """Read the token to send to a server."""
    from holdfast.app.data.token import FLAG, token_in_file  # only here: most commands read no token from a file

    hint = "HOLDFAST_URL is the address of a server"
    if server is None:
        message = "is for a server, and none is running here: without one a command opens the data directory itself"
        raise InvalidSetting(problems=[Problem(FLAG, message, hint=hint)])
    if server.url.startswith("unix:"):
        message = (
            f"is for a server that is reached by HTTP; the one at {server.url} knows who calls it, and takes no token"
        )
        raise InvalidSetting(problems=[Problem(FLAG, message, hint=hint)])
    return token_in_file(Path(token_file), FLAG)


def is_looked_after(settings: ServerReach | None = None) -> bool:
    """Whether some process runs the jobs that a command shows: a server, here or elsewhere, or a command that waits.

    This tries no lock, as that could keep another process from starting at this moment.

    Raises:
        Unavailable: The database cannot be read right now.
    """
    settings = settings or read_reach()
    if whereabouts.find(settings) is not None:
        return True
    from holdfast.app import leadership, wiring
    from holdfast.app.time import SystemClock
    from holdfast.storage.sql import upkeep

    place = wiring.database(_all_of(settings), DataDir(settings.data))
    owner, left_s = upkeep.leader(place, SystemClock().now())
    return left_s > 0 and (upkeep.file_of(place) is None or leadership.is_here_and_alive(owner))


def _all_of(reach: ServerReach) -> Settings:
    """Return all settings, including those that were read already."""
    from holdfast.app.settings import Settings, read_settings

    if isinstance(reach, Settings):
        return reach
    return read_settings(**{name: getattr(reach, name) for name in reach.model_fields_set})


def _in_process(stack: ExitStack, settings: Settings, directory: DataDir, *, drive: bool, places: bool) -> Client:
    # Imported here because a client of a running server needs none of the server's parts.
    from holdfast.app import wiring
    from holdfast.app.data.ownership import refuse_copy
    from holdfast.app.entrance.accounts import account
    from holdfast.app.inprocess import in_process

    store = wiring.store(settings, directory)
    stack.callback(store.close)
    backend, principal, own = (
        wiring.backend(settings, directory, store),
        account(),
        partial(_refuse_inherited, directory.path),
    )
    if not drive:
        return in_process(backend, principal, before=own, before_writing=partial(refuse_copy, directory))
    from holdfast.app import embedded, log

    log.configure(settings.log_level)
    driven = stack.enter_context(embedded.driving(settings, directory, places=places))

    def before() -> None:
        own()
        driven()

    return in_process(backend, principal, before=before)
