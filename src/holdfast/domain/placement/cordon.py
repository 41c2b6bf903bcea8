"""What an operator has closed to new work: single nodes, or the whole server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Sequence


class Pause(Struct, frozen=True):
    """Since when nothing is started, and why."""

    since: float
    reason: str
    """For people, as ``the database was restored from friday.db``."""

    def in_words(self) -> str:
        """Say so, and what ends it."""
        return f"nothing is started until `holdfast db resume`: {self.reason}"


class Cordon(Struct, frozen=True):
    """A node on which nothing more is placed; one that is being drained is emptied, too."""

    node: str
    """Its name; nodes of several executors that share it are cordoned together."""
    since: float
    drain: bool = False
    """Whether what runs there is stopped, to go on elsewhere."""
    reason: str = ""
    """For people."""

    def in_words(self) -> str:
        """Say so: ``node n1 is being drained: a new kernel``."""
        return f"node {self.node} is {'being drained' if self.drain else 'cordoned'}" + (
            f": {self.reason}" if self.reason else ""
        )

    def over(self, earlier: Cordon | None) -> Cordon:
        """Return what becomes of a node that may be cordoned already: a drain stays one, and so does a reason."""
        if earlier is None:
            return self
        drain, reason = self.drain or earlier.drain, self.reason or earlier.reason
        return (
            earlier if (drain, reason) == (earlier.drain, earlier.reason) else evolve(self, drain=drain, reason=reason)
        )


_MOST_TOLD = 3


def and_closed(reason: str, closed: Sequence[str], *, any_left: bool) -> str:
    """Say why a job waits where nodes get no new work; which ones is all there is to say where no other is left."""
    more = [f"and {len(closed) - _MOST_TOLD} more"] if len(closed) > _MOST_TOLD else []
    words = "; ".join([*closed[:_MOST_TOLD], *more])
    return f"{reason}; {words}" if any_left else words
