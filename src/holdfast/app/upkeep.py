"""What an operator does with the database, beside or before a server: upgrade, check, prune, back up, restore."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from holdfast.app import log, running, wiring
from holdfast.app.data.ownership import refuse_copy, require_database, word_of
from holdfast.app.entrance.accounts import account
from holdfast.app.settings import Settings, read_settings
from holdfast.app.time import SystemClock
from holdfast.domain.audit import Caller
from holdfast.domain.placement.cordon import Pause
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.files import ProcessFiles
from holdfast.service.retention import Retention
from holdfast.storage.sql import migrations, upkeep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir
    from holdfast.ports.store import Store
    from holdfast.storage.sql.upkeep import DatabaseHealth


def _surroundings() -> tuple[Settings, DataDir, str]:
    settings = read_settings()
    log.configure(settings.log_level)
    directory = wiring.data_dir(settings)
    return settings, directory, wiring.database(settings, directory)


def upgrade() -> tuple[str, str | None, str]:
    """Upgrade the database to the schema of this version; returns its place, and the schema before and after.

    Raises:
        Conflict: A newer Holdfast wrote it.
        DataDirLocked: A server is running on it.
        EngineError: Programs run under another version of Holdfast, which needs the current schema.
        Unavailable, Internal: It cannot be reached, or is damaged.
    """
    settings, directory, place = _surroundings()
    before = migrations.current(place)
    if before != migrations.HEAD:
        with ExitStack() as stack:
            stack.callback(running.own(settings, directory, "db upgrade").release)
            migrations.upgrade(place, before_upgrade=lambda: require_compatible(directory.runs))
    return upkeep.shown(place), before, migrations.HEAD


def downgrade() -> tuple[str, str | None, str]:
    """Bring the database back to the schema before this version's; returns its place, and the schema before and after.

    Raises:
        Conflict: It has neither schema.
        DataDirLocked: A server is running on it.
        Unavailable, Internal: It cannot be reached, or is damaged.
    """
    settings, directory, place = _surroundings()
    before = migrations.current(place)
    with ExitStack() as stack:
        stack.callback(running.own(settings, directory, "db downgrade").release)
        migrations.downgrade(place)
    return upkeep.shown(place), before, migrations.PREVIOUS


def check() -> DatabaseHealth:
    """Examine the database; damage is part of the result.

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
    """Replace the database by a backup; returns where the replaced database is kept, if there was one.

    Args:
        source: The backup.
        resume: Whether its waiting jobs may start at once; if not, nothing starts before ``resume``.

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
    """Start nothing more, also while a server runs, as after a restore with a database server's own tools.

    Raises:
        Conflict: The directory is a copy of one that is in use.
        Unavailable, Internal: The database cannot be written.
    """
    reason = Pause(SystemClock().now(), "it was paused by hand")
    with _opened() as store:
        store.put_pause(reason, caller=_caller())


def resume() -> bool:
    """Start waiting jobs again, also while a server runs; returns whether the database was paused.

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
    """Delete jobs that ended longer ago, also while a server runs; yields how many after each bounded step.

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
    """Check that the database exists and is sound, before anything relies on it.

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
