"""What a supervisor writes into its record; what a full or read-only disk refuses is kept, and written later."""

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
    """The record of the one run a supervisor has."""

    def __init__(self, record: Record, surroundings: Surroundings) -> None:
        """Begin with nothing to write."""
        self._record = record
        self._place, self._boot = surroundings.place, surroundings.boot
        self.due = float("inf")
        """When to write again what the disk refused."""

    @property
    def lag(self) -> bool:
        """Whether the record lacks something."""
        return self._record.lags

    def begin(self, program: SupervisedRun) -> None:
        """Note that a program is about to be started.

        Raises:
            CannotLaunch: That cannot be written, so it must not be.
        """
        self.due = float("inf")
        try:
            self._record.begin(program, self._place, self._boot)
        except OSError as error:
            raise unrecorded(error.errno or 0) from None

    def took_over(self, program: SupervisedRun, before: float, after: float) -> None:
        """Note a program that another supervisor started."""
        self.due = float("inf")
        self._write(lambda: self._record.begin(program, self._place, self._boot))
        self.started(program, before, after)

    def started(self, program: SupervisedRun, before: float, after: float) -> None:
        """Note where a program is, and between which moments since boot it was born."""
        self._write(lambda: self._record.started(program, before, after))

    def exited(self, program: SupervisedRun) -> None:
        """Note how a program ended."""
        self._write(lambda: self._record.exited(program))

    def ended(self, program: SupervisedRun) -> None:
        """Note the whole outcome."""
        self._write(lambda: self._record.ended(program))

    def again(self, now: float) -> bool:
        """Write what is due of what was refused; returns whether the record lacks nothing any more."""
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
        except OSError as error:  # the shim is told all the same
            self.due = moment.monotonic() + AGAIN_EVERY_S
            complain(f"the record {self._record.path} cannot be written: {error}")
        else:
            self.due = float("inf")
