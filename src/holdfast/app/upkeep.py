"""What an operator does with the database, beside or before a server: upgrade, check, prune, back up, restore."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from holdfast.app import log, running, wiring
from holdfast.app.data.ownership import refuse_copy, require_database, word_of
from holdfast.app.entrance.accounts import account
from holdfast.app.loops.loop import Loop
from holdfast.app.settings import Settings, read_settings
from holdfast.app.time import SystemClock
from holdfast.domain.audit import Caller
from holdfast.domain.placement.cordon import Pause
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.files import ProcessFiles
from holdfast.errors import HoldfastError
from holdfast.service.retention import Retention
from holdfast.storage.sql import migrations, upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir
    from holdfast.ports.clock import Clock
    from holdfast.ports.retention import RetentionStore
    from holdfast.ports.store import Store
    from holdfast.storage.sql.upkeep import DatabaseHealth

_SWEEP_EVERY_S = 600.0
_EXPIRE_EVERY_S = 2.0
"""How late a job is forgotten whose own time to live is over."""
_AFTER_FAILURE_S = 60.0
_BETWEEN_STEPS_S = 0.1
"""Leaves the database to the controller most of the time."""
_log = logging.getLogger(__name__)


def _surroundings() -> tuple[Settings, DataDir, str]:
    settings = read_settings()
    log.configure(settings.log_level)
    directory = wiring.data_dir(settings)
    return settings, directory, wiring.database(settings, directory)


def upgrade() -> tuple[str, str | None, str]:
    """Bring the database to the schema this version needs; returns its place, and the schema before and after.

    Raises:
        Conflict: A newer Holdfast made it.
        DataDirLocked: A server is running on it.
        EngineError: Programs run under another version of Holdfast, which needs the schema it has.
        Unavailable, Internal: It cannot be reached, or is damaged.
    """
    settings, directory, place = _surroundings()
    before = migrations.current(place)
    if before != migrations.HEAD:
        with ExitStack() as stack:
            stack.callback(running.own(settings, directory, "db upgrade").release)
            migrations.upgrade(place, before_upgrade=lambda: require_compatible(directory.runs))
    return upkeep.shown(place), before, migrations.HEAD


def check() -> DatabaseHealth:
    """Look at the database; what is wrong with it is part of the answer.

    Raises:
        Unavailable: It cannot be reached or read right now.
    """
    return upkeep.examine(_surroundings()[2])


def backup(target: Path) -> int:
    """Copy the database, also while a server runs; returns the copy's size in bytes.

    Raises:
        Conflict: The target exists, or the database is on a server with its own tools.
        Unavailable, Internal: It cannot be read or written.
    """
    return upkeep.back_up(_surroundings()[2], target)


def restore(source: Path, *, resume: bool) -> Path | None:
    """Put a backup in the database's place; returns where the one that was there is kept.

    Args:
        source: The backup.
        resume: Whether what it has that waits may start at once; else nothing does before ``resume``.

    Raises:
        DataDirLocked: A server or a command is using it.
        Conflict: The backup is damaged or too new, or the database is on a server.
        Unavailable, Internal: It cannot be read or written.
    """
    settings, directory, place = _surroundings()
    with ExitStack() as stack:
        ownership = running.own(settings, directory, "db restore")
        stack.callback(ownership.release)
        pause = None if resume else Pause(SystemClock().now(), f"the database was restored from {source.name}")
        kept = upkeep.restore(place, source, pause=pause, caller=_caller())
        ownership.forget_database()
        return kept


def pause() -> None:
    """Have nothing started any more, also while a server runs, as after a restore with a database server's own tools.

    Raises:
        Conflict: The directory is a copy of one that is in use.
        Unavailable, Internal: The database cannot be written.
    """
    reason = Pause(SystemClock().now(), "it was paused by hand")
    with _opened() as store:
        store.put_pause(reason, caller=_caller())


def resume() -> bool:
    """Have what waits started again, also while a server runs; returns whether it was not.

    Raises:
        Conflict: The directory is a copy of one that is in use.
        Unavailable, Internal: The database cannot be written.
    """
    with _opened() as store:
        return store.delete_pause(caller=_caller())


@contextmanager
def _opened() -> Iterator[Store]:
    settings, directory, _ = _surroundings()
    refuse_copy(directory)
    with closing(wiring.store(settings, directory)) as store:
        yield store


def _caller() -> Caller:
    return Caller(account(), SystemClock().now(), origin="in-process")


def prune(*, older_than_s: float, keep: int, dry_run: bool) -> Iterator[int]:
    """Forget jobs that ended longer ago, also while a server runs; yields how many after each bounded step.

    Raises:
        Conflict: The directory is a copy of one that is in use.
        Unavailable: Files or rows cannot be deleted right now.
    """
    settings, directory, _ = _surroundings()
    if not dry_run:
        refuse_copy(directory)
    store = wiring.store(settings, directory)
    try:
        retention = Retention(store, ProcessFiles(directory.runs), word_of(directory))
        yield from retention.sweep(
            ended_before=SystemClock().now() - older_than_s,
            keep=keep,
            dry_run=dry_run,
        )
    finally:
        store.close()


def refuse_damage(settings: Settings, directory: DataDir) -> None:
    """Make sure, before anybody relies on it, that the database is there and whole.

    Raises:
        Conflict: Its file is gone.
        Internal: It is damaged.
        Unavailable: It cannot be read right now.
    """
    place = wiring.database(settings, directory)
    file = upkeep.file_of(place)
    if file is not None:
        require_database(file)
    upkeep.refuse_damage(place)


def forget_regularly(stack: ExitStack, settings: Settings, directory: DataDir, store: RetentionStore) -> None:
    """Forget in the background what the settings say is old, and what expires by itself, until the stack ends it."""
    retention = Retention(store, ProcessFiles(directory.runs), word_of(directory))
    forgetter = Forgetter(retention, settings.retention, SystemClock(), acts_age_s=settings.audit_retention)
    loop = Loop("holdfast-retention", forgetter.step)
    stack.callback(loop.stop)
    loop.start()


class Forgetter:
    """Forgets jobs that expire soon after they do, and goes through all others again and again, in bounded steps."""

    def __init__(
        self, retention: Retention, age_s: float | None, clock: Clock, *, acts_age_s: float | None = None
    ) -> None:
        """Begin with a sweep; without an age, only jobs that expire by themselves are forgotten.

        Args:
            retention: Forgets.
            age_s: Of jobs that have ended.
            clock: Says what is how old.
            acts_age_s: Of entries of the audit log; without one they stay.
        """
        self._acts_age_s, self._acts_at = acts_age_s, 0.0
        self._retention = retention
        self._age_s = age_s
        self._clock = clock
        self._sweep: Iterator[int] | None = None
        self._sweep_at = self._expire_at = 0.0
        self._forgotten = 0
        self._failures: dict[str, str] = {}
        """What was said last of each part that fails, which is said once."""

    def step(self) -> float:
        """Take one step; returns how long to wait for the next."""
        now = self._clock.now()
        went_on = [self._tried(part, now) for part in (self._expired, self._swept, self._acts_forgotten)]
        return _BETWEEN_STEPS_S if any(went_on) else _EXPIRE_EVERY_S

    def _tried(self, part: Callable[[float], bool], now: float) -> bool:
        try:
            went_on = part(now)
        except HoldfastError as error:
            if self._failures.get(part.__name__) != str(error):
                _log.warning("deleting old jobs failed; trying again later: %s", error)
            self._failures[part.__name__] = str(error)
            return False
        if went_on:
            self._failures.pop(part.__name__, None)
        return went_on

    def _expired(self, now: float) -> bool:
        """Take one step at what has expired; returns whether there may be more of it."""
        if now < self._expire_at:
            return False
        self._expire_at = now + _AFTER_FAILURE_S
        forgotten = self._retention.expire(now)
        self._expire_at = now
        return forgotten > 0

    def _acts_forgotten(self, now: float) -> bool:
        """Take one step at the audit log, if it is due; returns whether there may be more of it."""
        if self._acts_age_s is None or now < self._acts_at:
            return False
        self._acts_at = now + _SWEEP_EVERY_S
        more = next(self._retention.forget_acts(now - self._acts_age_s), None) is not None
        if more:
            self._acts_at = now
        return more

    def _swept(self, now: float) -> bool:
        """Take one step of the sweep that is going on or due; returns whether there may be more of it."""
        if self._age_s is None or now < self._sweep_at:
            return False
        sweep, self._sweep = self._sweep or self._retention.sweep(ended_before=now - self._age_s), None
        self._sweep_at = now + _SWEEP_EVERY_S
        forgotten = next(sweep, None)
        if forgotten is not None:
            self._sweep, self._sweep_at = sweep, now
            self._forgotten += forgotten
            return True
        if self._forgotten:
            _log.info("%d old jobs deleted", self._forgotten)
        self._forgotten = 0
        return False
