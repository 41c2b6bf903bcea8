"""What an operator does with the database, beside or before a server: upgrade, check, prune, back up, restore.

Decides which of it needs the data directory for itself, and how often a server forgets; leaves the doing to
``storage.sql.upkeep`` and ``service.retention``.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import structlog

from holdfast.app import logging, wiring
from holdfast.app.loop import Loop
from holdfast.app.settings import Settings, read_settings
from holdfast.app.time import SystemClock
from holdfast.engines.process.files import ProcessFiles
from holdfast.errors import HoldfastError
from holdfast.service.retention import Retention
from holdfast.storage.sql import migrations, upkeep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.app.datadir import DataDir
    from holdfast.ports.clock import Clock
    from holdfast.ports.retention import RetentionStore
    from holdfast.storage.sql.upkeep import Health

_SWEEP_EVERY_S = 600.0
_BETWEEN_STEPS_S = 0.1
"""Leaves the database to the controller most of the time."""
_log = structlog.get_logger(__name__)


def _surroundings() -> tuple[Settings, DataDir, str]:
    settings = read_settings()
    logging.configure(settings.log_level)
    directory = wiring.data_dir(settings)
    return settings, directory, wiring.database(settings, directory)


def upgrade() -> tuple[str, str | None, str]:
    """Bring the database to the schema this version needs; returns its place, and the schema before and after.

    Raises:
        Conflict: A newer Holdfast made it.
        DataDirLocked: A server is running on it.
        Unavailable, Internal: It cannot be reached, or is damaged.
    """
    _, directory, place = _surroundings()
    before = migrations.current(place)
    if before != migrations.HEAD:
        with ExitStack() as stack:
            stack.callback(directory.lock("db upgrade").release)
            migrations.upgrade(place)
    return upkeep.shown(place), before, migrations.HEAD


def check() -> Health:
    """Look at the database; what is wrong with it is part of the answer.

    Raises:
        Unavailable: It cannot be reached or read right now.
    """
    return upkeep.examine(_surroundings()[2])


def backup(target: Path) -> int:
    """Copy the database, also while a server runs; returns the copy's size in bytes.

    Raises:
        Conflict: The target exists, or the database is on a server with tools of its own.
        Unavailable, Internal: It cannot be read or written.
    """
    return upkeep.back_up(_surroundings()[2], target)


def restore(source: Path) -> Path | None:
    """Put a backup in the database's place; returns where the one that was there is kept.

    Raises:
        DataDirLocked: A server or a command is using it.
        Conflict: The backup is damaged or too new, or the database is on a server.
        Unavailable, Internal: It cannot be read or written.
    """
    _, directory, place = _surroundings()
    with ExitStack() as stack:
        stack.callback(directory.lock("db restore").release)
        return upkeep.restore(place, source)


def prune(*, older_than_s: float, keep: int, dry_run: bool) -> Iterator[int]:
    """Forget jobs that ended longer ago, also while a server runs; yields how many after each bounded step.

    Raises:
        Unavailable: Files or rows cannot be deleted right now.
    """
    settings, directory, _ = _surroundings()
    store = wiring.store(settings, directory)
    try:
        retention = Retention(store, ProcessFiles(directory.runs))
        yield from retention.sweep(
            ended_before=SystemClock().now() - older_than_s,
            keep=keep,
            dry_run=dry_run,
        )
    finally:
        store.close()


def refuse_damage(settings: Settings, directory: DataDir) -> None:
    """Make sure, before anybody relies on it, that the database is whole.

    Raises:
        Internal: It is damaged.
        Unavailable: It cannot be read right now.
    """
    upkeep.refuse_damage(wiring.database(settings, directory))


def forget_regularly(stack: ExitStack, settings: Settings, directory: DataDir, store: RetentionStore) -> None:
    """Forget in the background what the settings say is old, until the stack ends it."""
    if settings.retention is None:
        return
    forgetter = Forgetter(Retention(store, ProcessFiles(directory.runs)), settings.retention, SystemClock())
    loop = Loop("holdfast-retention", forgetter.step)
    stack.callback(loop.stop)
    loop.start()


class Forgetter:
    """Goes through all finished jobs again and again, one bounded step at a time."""

    def __init__(self, retention: Retention, age_s: float, clock: Clock) -> None:
        """Begin with a sweep."""
        self._retention = retention
        self._age_s = age_s
        self._clock = clock
        self._sweep: Iterator[int] | None = None
        self._forgotten = 0

    def step(self) -> float:
        """Take one step; returns how long to wait for the next."""
        sweep = self._sweep or self._retention.sweep(ended_before=self._clock.now() - self._age_s)
        self._sweep = sweep
        try:
            forgotten = next(sweep, None)
        except HoldfastError as error:
            _log.warning("forgetting old jobs failed; trying again later", error=str(error))
            forgotten = None
        if forgotten is not None:
            self._forgotten += forgotten
            return _BETWEEN_STEPS_S
        if self._forgotten:
            _log.info("old jobs forgotten", jobs=self._forgotten)
        self._sweep, self._forgotten = None, 0
        return _SWEEP_EVERY_S
