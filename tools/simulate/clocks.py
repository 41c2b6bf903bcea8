"""Clocks that are wrong: each machine has its own, which is off by some time and is reset now and then.

A process reads its machine's clock as ``app.time.SystemClock`` reads the real one: steps forward are followed at once,
steps back only by the next process. Durations are always measured correctly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.simulation.agenda import Agenda

A_MOMENT_S = 1e-6
"""Two instants that are nearer than that are the same: adding a clock's offset rounds."""


class Wall:
    """The wall clock of one machine."""

    def __init__(self, agenda: Agenda) -> None:
        """Begin correct."""
        self._agenda = agenda
        self.offset = 0.0
        """By how much it is ahead of the world's time."""
        self.readings = {0.0}
        """By how much it ever was."""

    def set(self, offset: float) -> None:
        """Set the clock; running processes follow it only forwards."""
        self.offset = offset
        self.readings.add(offset)

    def process(self) -> ProcessClock:
        """Return the clock of a process that starts now."""
        return ProcessClock(self, self._agenda)


class Readings:
    """What the clocks of some machines may have said when."""

    def __init__(self, walls: Callable[[], Sequence[Wall]]) -> None:
        """Remember how to find the clocks."""
        self._walls = walls

    def latest(self, when: float) -> float:
        """Return the latest that any of them may have said at one of the world's times."""
        return when + max(offset for wall in self._walls() for offset in wall.readings)

    def is_early(self, reading: float, due: float) -> bool:
        """Whether no clock can have said that it was due, when one of them said this."""
        return self.latest(max(self.true(reading))) < due - A_MOMENT_S

    def true(self, reading: float) -> set[float]:
        """Return the world's times at which one of them may have said this."""
        return {reading - offset for wall in self._walls() for offset in wall.readings}


class ProcessClock:
    """The ``SteadyClock`` port of one process."""

    def __init__(self, wall: Wall, agenda: Agenda) -> None:
        """Start at what the machine's clock says."""
        self._wall = wall
        self._agenda = agenda
        self._offset = wall.offset

    @property
    def offset(self) -> float:
        """By how much it is ahead of the world's time now."""
        self._offset = max(self._offset, self._wall.offset)
        return self._offset

    def now(self) -> float:
        """Return seconds since the epoch, as far as this process knows."""
        return self._agenda.now() + self.offset

    def steady(self) -> float:
        """Return seconds since the world began."""
        return self._agenda.elapsed
