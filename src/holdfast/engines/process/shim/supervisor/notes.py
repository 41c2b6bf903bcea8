"""Writes a supervisor's record; lines that a full or read-only disk refuses are kept and written later."""

from __future__ import annotations

from .. import moment
from ..complaints import complain
from .launch import unrecorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..record import Record
    from ..records import SupervisedRun
    from .surroundings import Surroundings

AGAIN_EVERY_S = 1.0


class Notes:
    """The record of a supervisor's run."""

    def __init__(self, record: Record, surroundings: Surroundings) -> None:
        self._record = record
        self._place, self._boot = surroundings.place, surroundings.boot
        self.due = float("inf")
        """When to retry the refused lines."""

    @property
    def lag(self) -> bool:
        """Whether the record lacks lines."""
        return self._record.lags

    def begin(self, program: SupervisedRun) -> None:
        """Record that a program is about to be started.

        Raises:
            CannotLaunch: That cannot be recorded, so the program must not start.
        """
        self.due = float("inf")
        try:
            self._record.begin(program, self._place, self._boot)
        except OSError as error:
            raise unrecorded(error.errno or 0) from None

    def took_over(self, program: SupervisedRun, before: float, after: float) -> None:
        """Record a program that another supervisor started."""
        self.due = float("inf")
        self._write(lambda: self._record.begin(program, self._place, self._boot))
        self.started(program, before, after)

    def started(self, program: SupervisedRun, before: float, after: float) -> None:
        """Record a program's process, and the moments since boot between which it was born."""
        self._write(lambda: self._record.started(program, before, after))

    def exited(self, program: SupervisedRun) -> None:
        """Record how a program ended."""
        self._write(lambda: self._record.exited(program))

    def ended(self, program: SupervisedRun) -> None:
        """Record the whole outcome."""
        self._write(lambda: self._record.ended(program))

    def again(self, now: float) -> bool:
        """Retry refused lines that are due; returns whether the record is complete."""
        if now < self.due:
            return False
        try:
            self._record.write()
        except OSError:
            self.due = now + AGAIN_EVERY_S
            return False
        self.due = float("inf")
        return True

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:  # The shim is told all the same.
            self.due = moment.monotonic() + AGAIN_EVERY_S
            complain(f"the record {self._record.path} cannot be written: {error}")
        else:
            self.due = float("inf")
