"""Opens a way to a Holdfast: to the server that is found, or without one to the data directory, in this process.

The result is always a ``Client`` that speaks the public API.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from holdfast.app import whereabouts
from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import read_settings
from holdfast.app.whereabouts import Origin
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
    found = whereabouts.find(settings)
    if found is not None:
        with Client(found.url, found.token) as client:
            if found.origin is Origin.DIRECTORY:
                client.connection.find = partial(_found, DataDir(settings.data))
            client.connection.known = found.origin is not Origin.NAMED
            yield _ready(client, settings, waits, remark)
        return
    with ExitStack() as stack:
        yield _in_process(stack, settings, DataDir(settings.data), drive=drive, places=places)


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
    if whereabouts.find(settings) is not None:
        return True
    from holdfast.app import leadership, wiring
    from holdfast.app.time import SystemClock
    from holdfast.storage.sql import upkeep

    place = wiring.database(settings, DataDir(settings.data))
    owner, left_s = upkeep.leader(place, SystemClock().now())
    return left_s > 0 and (upkeep.file_of(place) is None or leadership.is_here_and_alive(owner))


def _in_process(stack: ExitStack, settings: Settings, directory: DataDir, *, drive: bool, places: bool) -> Client:
    # Imported here because a client of a running server needs none of the server's parts.
    from holdfast.app import wiring
    from holdfast.app.data.ownership import refuse_copy
    from holdfast.app.entrance.accounts import account
    from holdfast.app.inprocess import in_process

    store = wiring.store(settings, directory)
    stack.callback(store.close)
    backend, principal = wiring.backend(settings, directory, store), account()
    if not drive:
        return in_process(backend, principal, before_writing=partial(refuse_copy, directory))
    from holdfast.app import embedded, log

    log.configure(settings.log_level)
    driven = stack.enter_context(embedded.driving(settings, directory, places=places))
    return in_process(backend, principal, before=driven)
