"""How long something has been waited for, whatever happened to the clock meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.ports.clock import SteadyClock

_A_STEP_S = 0.1
"""How far the clock must jump ahead for that to be a step and not an inaccuracy of reading it."""
_MOST_STEPS = 64


class Patience:
    """Says since when something has been waited for, as far as this process can vouch for it.

    The time a status was entered is stored by a wall clock, perhaps of another machine, and clocks get adjusted. Giving
    up on a program too early runs it twice, so time counts at the earliest from the start of this process, and a step
    of its clock does not count.
    """

    def __init__(self, clock: SteadyClock) -> None:
        """Start counting."""
        self._clock = clock
        self._began = clock.now()
        self._ahead = self._began - clock.steady()
        self._steps: list[tuple[float, float]] = []
        """Where the clock was set forward: its reading then, and by how much."""

    def look(self, now: float) -> None:
        """Notice whether the clock was set forward; it never goes back within a process."""
        ahead = now - self._clock.steady()
        if ahead - self._ahead > _A_STEP_S:
            self._steps = [*self._steps[1 - _MOST_STEPS :], (now, ahead - self._ahead)]
            self._ahead = ahead

    def since(self, entered: float) -> float:
        """Return since when, by today's clock, a status entered then has been waited in."""
        began = max(entered, self._began)
        return began + sum(by for at, by in self._steps if began < at) if self._steps else began
