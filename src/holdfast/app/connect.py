"""Finds a way to a Holdfast: a named server, the one running on the data directory, or this process itself.

The result is always a ``Client`` that speaks the public API.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import read_settings
from holdfast.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.app.settings import Settings


@contextmanager
def connect(
    *,
    drive: bool = False,
    places: bool = True,
    settings: Settings | None = None,
    waits: Callable[[str], None] | None = None,
    remark: Callable[[str], None] | None = None,
) -> Iterator[Client]:
    """Open a client for as long as the context lasts.

    Args:
        drive: Where no server runs, also run the jobs of the data directory in this process meanwhile, as
            soon as no other process does.
        places: Whether to start waiting jobs meanwhile; else only what runs is looked after.
        settings: Where to look; by default the environment's.
        remark: Told if the server is older or newer than this program.
        waits: Told when a server stops answering, and when it answers again: in between it is waited for.

    Yields:
        A client.
    """
    settings = settings or read_settings()
    if settings.url:
        from holdfast.app.data.token import given_token  # only here: most commands find a server by its directory

        with Client(settings.url, given_token(settings)) as client:
            yield _ready(client, settings, waits, remark)
        return
    directory = DataDir(settings.data)
    server = directory.server()
    if server is not None:
        with Client(server.url, server.token) as client:
            client.connection.find, client.connection.known = partial(_found, directory), True
            yield _ready(client, settings, waits, remark)
        return
    with ExitStack() as stack:
        yield _in_process(stack, settings, directory, drive=drive, places=places)


def _ready(
    client: Client, settings: Settings, waits: Callable[[str], None] | None, remark: Callable[[str], None] | None
) -> Client:
    client.connection.patience_s = settings.patience
    if remark is not None:
        client.connection.remark = remark
    if waits is not None:
        client.connection.be_patient(waits)
    return client


def _found(directory: DataDir) -> tuple[str, str] | None:
    server = directory.server()
    return None if server is None else (server.url, server.token)


def is_looked_after(settings: Settings | None = None) -> bool:
    """Whether somebody runs the jobs that a command shows: a server, here or elsewhere, or a command that waits.

    Of the one that runs them no lock is tried: that could keep another from starting in this very moment.

    Raises:
        Unavailable: The database cannot be read right now.
    """
    settings = settings or read_settings()
    directory = DataDir(settings.data)
    if settings.url or directory.server() is not None:
        return True
    from holdfast.app import leadership, wiring
    from holdfast.app.time import SystemClock
    from holdfast.storage.sql import upkeep

    place = wiring.database(settings, directory)
    owner, left_s = upkeep.leader(place, SystemClock().now())
    return left_s > 0 and (upkeep.file_of(place) is None or leadership.is_here_and_alive(owner))


def _in_process(stack: ExitStack, settings: Settings, directory: DataDir, *, drive: bool, places: bool) -> Client:
    # Imported here because a client of a running server needs none of the server's parts.
    from holdfast.app import wiring
    from holdfast.app.data.ownership import refuse_copy
    from holdfast.app.inprocess import in_process

    store = wiring.store(settings, directory)
    stack.callback(store.close)
    backend, principal = wiring.backend(settings, directory, store), wiring.account()
    if not drive:
        return in_process(backend, principal, before_writing=partial(refuse_copy, directory))
    from holdfast.app import embedded, log

    log.configure(settings.log_level)
    driven = stack.enter_context(embedded.driving(settings, directory, places=places))
    return in_process(backend, principal, before=driven)
