"""Which global caps were in force when."""

from __future__ import annotations

from tools.simulate.clocks import A_MOMENT_S


class Caps:
    """The history of ``globalMaxRetries``."""

    def __init__(self) -> None:
        """Begin with no cap."""
        self._since: list[tuple[float, int | None]] = [(float("-inf"), None)]

    def change(self, when: float, cap: int | None) -> None:
        """Take in a change."""
        self._since.append((when, cap))

    def at(self, when: float) -> set[int | None]:
        """Return the caps in force at an instant: two, where one was changed at that very instant."""
        before = [cap for since, cap in self._since if since < when - A_MOMENT_S]
        at_once = (cap for since, cap in self._since if abs(since - when) <= A_MOMENT_S)
        return {before[-1] if before else None, *at_once}
