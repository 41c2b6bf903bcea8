"""Runs the jobs of a data directory in this process, while no other process does.

It takes over as soon as the directory's lock is free, so that a job continues when the process that ran it is gone.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from holdfast.app import running, upkeep, wiring
from holdfast.app.embedded import Embedded
from holdfast.app.loop import Loop
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SystemClock
from holdfast.controller.controller import ControllerSettings
from holdfast.engines.process.client import require_compatible
from holdfast.errors import Conflict, HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.app.datadir import DataDir
    from holdfast.app.ownership import Ownership
    from holdfast.app.settings import Settings

TRY_EVERY_S = 0.25
_DRIVING_S = 3600.0


@contextmanager
def driving(settings: Settings, directory: DataDir, *, places: bool = True) -> Iterator[Callable[[], None]]:
    """Drive the directory's jobs for as long as the context lasts; without ``places`` only those that run.

    Yields:
        Raises what nobody gets over by waiting, if such a thing has happened to whoever drives here.

    Raises:
        Conflict: The directory is a copy of one that is in use, or its database is not the one it had.
        EngineError, Internal: The engine does not start; the database is damaged.
    """
    driver = _Driver(settings, directory, places=places)
    watch = Loop("holdfast-driver", driver.watch)
    driver.try_to_drive()
    watch.start()
    try:
        yield driver.require_working
    finally:
        watch.stop()
        driver.stop()


class _Driver:
    """Holds the directory and the loops once it has them."""

    def __init__(self, settings: Settings, directory: DataDir, *, places: bool) -> None:
        self._settings = settings
        self._places = places
        self._directory = directory
        self._held: ExitStack | None = None
        self._embedded: Embedded | None = None
        self._failure: HoldfastError | None = None

    def watch(self) -> float:
        """Try again until it drives; returns when to call again."""
        try:
            self.try_to_drive()
        except HoldfastError as error:
            self._failure = error
        return TRY_EVERY_S if self._held is None and self._failure is None else _DRIVING_S

    def try_to_drive(self) -> None:
        """Take over if the directory is free."""
        if self._held is not None:
            return
        with ExitStack() as stack:
            try:
                ownership = running.own(self._settings, self._directory, "run")
                stack.callback(ownership.release)
                self._embedded = start_embedded(stack, self._settings, self._directory, ownership, places=self._places)
            except Unavailable:
                return  # somebody else drives, or the database is away for now
            self._held = stack.pop_all()

    def require_working(self) -> None:
        failure = self._failure or (self._embedded.failure() if self._embedded is not None else None)
        if failure is not None and not isinstance(failure, Unavailable | Conflict):
            raise failure

    def stop(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def start_embedded(
    stack: ExitStack,
    settings: Settings,
    directory: DataDir,
    ownership: Ownership,
    telemetry: Telemetry | None = None,
    *,
    places: bool = True,
) -> Embedded:
    """Start controller and executor on a data directory this process owns; the stack ends them.

    Raises:
        Unavailable: Another process leads the database, or the database is not there.
        EngineError: Programs are held by another version, or the engine does not start.
        Internal: The database is damaged, or lacks what was written last.
    """
    require_compatible(directory.runs)
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    upkeep.refuse_loss(settings, directory, ownership)
    leadership = running.leadership(settings, directory, ownership, store)
    stack.callback(leadership.step_down)
    ownership.led(leadership.take())
    embedded = Embedded(
        store,
        running.engine(settings, directory, ownership),
        leadership,
        telemetry or Telemetry(SystemClock().now),
        ControllerSettings(places=places, pods=running.pods(settings)),
    )
    stack.callback(embedded.stop)
    embedded.start()
    reserve = Loop("holdfast-reserve", directory.reserve.keep)
    stack.callback(reserve.stop)
    reserve.start()
    return embedded
