"""Checks of what is running: the database and the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app import whereabouts
from holdfast.app.data.ownership import require_database
from holdfast.app.doctor.finding import Finding, fail, ok, warn
from holdfast.client import Client
from holdfast.client.errors import difference
from holdfast.domain.terms.entries import ENTRIES
from holdfast.errors import HoldfastError
from holdfast.storage.sql import upkeep
from holdfast.wire.problems import read_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.app.settings import Settings

_MOST_WARNINGS = 5
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
    message = f"{health.place}, {health.rows['jobs']:,} jobs, sound"
    return warn(f"{message}; {health.paused}", "to have it go on: holdfast db resume") if health.paused else ok(message)


def server(settings: Settings) -> Finding:
    """Look whether a server runs and can work.

    Raises:
        HoldfastError: It says why it cannot.
    """
    place = whereabouts.find(settings)
    if place is None:
        return warn("none is running: jobs run only while a command waits for them", _START)
    with Client(place.url, place.token) as client:
        return _working(client, f"{place.url}, process {place.pid}" if place.pid else place.url)


def catalogue(settings: Settings) -> Finding:
    """Look whether policies, categories, queues and settings name what does not exist, or are dubious otherwise."""
    try:
        place = whereabouts.find(settings)
        if place is None:
            return ok("is looked at while a server runs")
        with Client(place.url, place.token) as client:
            warnings = list(_catalogue_warnings(client))
    except HoldfastError as error:
        return warn(f"cannot be looked at: {error.message}", "see what is said of the server")
    if not warnings:
        return ok("nothing names what does not exist")
    more = len(warnings) - _MOST_WARNINGS
    lines = [*warnings[:_MOST_WARNINGS], *([f"and {more} more"] if more > 0 else [])]
    return warn("; ".join(lines), "correct the manifest, then holdfast apply -f FILE")


def _catalogue_warnings(client: Client) -> Iterator[str]:
    for entry in client.settings().warnings:
        yield f"settings: {read_problem(entry)}"
    for info in ENTRIES.values():
        for view in () if info.private else client.entries(info).list():
            yield from (f"{info.noun} {view.name}: {read_problem(warning)}" for warning in view.warnings)


def _working(client: Client, where: str) -> Finding:
    client.health()
    version = client.version()
    text = f"{where}, version {version.version} (api {version.api}.{version.revision})"
    apart = difference(version.revision)
    return warn(f"{text}, is not of the same age", apart) if apart else ok(f"{text}, working")
