"""Checks of what is running: the database and the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app import whereabouts
from holdfast.app.data.ownership import require_database
from holdfast.app.doctor.finding import Finding, fail, ok, warn
from holdfast.client import Client
from holdfast.client.errors import difference
from holdfast.storage.sql import upkeep

if TYPE_CHECKING:
    from holdfast.app.settings import Settings

_START = "start one: holdfast up --daemon, or holdfast service install"


def database(settings: Settings) -> Finding:
    """Look whether the database can be read and is whole.

    Raises:
        HoldfastError: It is gone, or cannot be reached.
    """
    place = settings.database.get_secret_value() if settings.database else settings.data / "holdfast.db"
    file = upkeep.file_of(place)
    if file is not None:
        require_database(file)
        if not file.exists():
            return ok(f"{file} will be created when it is first needed")
    health = upkeep.examine(place)
    if health.problems:
        return fail(f"{health.place}: {'; '.join(health.problems)}", "for details: holdfast db check")
    found = f"{health.place}, {health.rows['jobs']:,} jobs, sound"
    return warn(f"{found}; {health.paused}", "to have it go on: holdfast db resume") if health.paused else ok(found)


def server(settings: Settings) -> Finding:
    """Look whether a server runs and can work.

    Raises:
        HoldfastError: It says why it cannot.
    """
    found = whereabouts.find(settings)
    if found is None:
        return warn("none is running: jobs run only while a command waits for them", _START)
    with Client(found.url, found.token) as client:
        return _working(client, f"{found.url}, process {found.pid}" if found.pid else found.url)


def _working(client: Client, where: str) -> Finding:
    client.health()
    found = client.version()
    text = f"{where}, version {found.version} (api {found.api}.{found.revision})"
    apart = difference(found.revision)
    return warn(f"{text}, is not of the same age", apart) if apart else ok(f"{text}, working")
