"""Runs the jobs of a data directory in this process, while nobody else does.

Decides when to take over: as soon as the directory's lock is free, so that a job goes on when the process
that drove it has gone.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from holdfast.app import wiring
from holdfast.app.embedded import Embedded
from holdfast.app.leadership import Leadership, owner
from holdfast.app.loop import Loop
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SystemClock
from holdfast.controller.controller import ControllerSettings
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.app.datadir import DataDir
    from holdfast.app.settings import Settings

TRY_EVERY_S = 0.25
_DRIVING_S = 3600.0


@contextmanager
def driving(settings: Settings, directory: DataDir) -> Iterator[None]:
    """Drive the directory's jobs for as long as the context lasts."""
    driver = _Driver(settings, directory)
    watch = Loop("holdfast-driver", driver.try_to_drive)
    driver.try_to_drive()
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        driver.stop()


class _Driver:
    """Holds the lock and the loops once it has them."""

    def __init__(self, settings: Settings, directory: DataDir) -> None:
        self._settings = settings
        self._directory = directory
        self._held: ExitStack | None = None

    def try_to_drive(self) -> float:
        """Take over if the lock is free; returns when to try again."""
        if self._held is None:
            with ExitStack() as stack:
                try:
                    stack.callback(self._directory.lock("run").release)
                    start_embedded(stack, self._settings, self._directory)
                except Unavailable:
                    return TRY_EVERY_S
                self._held = stack.pop_all()
        return _DRIVING_S

    def stop(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def start_embedded(
    stack: ExitStack, settings: Settings, directory: DataDir, telemetry: Telemetry | None = None
) -> Embedded:
    """Start controller and executor on a data directory this process owns; the stack ends them.

    Raises:
        Unavailable: Another process leads the database, or the database is not there.
    """
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    leadership = Leadership(store, owner(directory), SystemClock())
    stack.callback(leadership.step_down)
    leadership.epoch()
    embedded = Embedded(
        store,
        wiring.engine(settings, directory),
        leadership,
        telemetry or Telemetry(SystemClock().now),
        ControllerSettings(pods=wiring.pods(settings)),
    )
    stack.callback(embedded.stop)
    embedded.start()
    return embedded
