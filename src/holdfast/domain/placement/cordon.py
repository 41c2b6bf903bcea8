"""What an operator has closed to new work: single nodes, or the whole server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Sequence


class Pause(Struct, frozen=True):
    """A pause of the whole server: nothing is started, and running programs continue."""

    since: float
    reason: str
    """For people: ``the database was restored from friday.db``."""

    def in_words(self) -> str:
        """Describe the pause and how to end it."""
        return f"nothing is started until `holdfast db resume`: {self.reason}"


class Cordon(Struct, frozen=True):
    """A cordoned node: nothing more is placed there, and a drain also stops what runs there."""

    node: str
    """Its name; nodes of several executors that share it are cordoned together."""
    since: float
    drain: bool = False
    """Whether the runs there are stopped, to continue elsewhere."""
    reason: str = ""
    """For people."""

    def in_words(self) -> str:
        """Return ``node n1 is being drained: a new kernel``."""
        return f"node {self.node} is {'being drained' if self.drain else 'cordoned'}" + (
            f": {self.reason}" if self.reason else ""
        )

    def over(self, earlier: Cordon | None) -> Cordon:
        """Combine it with an earlier cordon of the node: a drain stays a drain, and a reason stays."""
        if earlier is None:
            return self
        drain, reason = self.drain or earlier.drain, self.reason or earlier.reason
        return (
            earlier if (drain, reason) == (earlier.drain, earlier.reason) else evolve(self, drain=drain, reason=reason)
        )


_MOST_TOLD = 3


def with_closed_nodes(reason: str, closed: Sequence[str], *, any_left: bool) -> str:
    """Add the nodes that get no new work to the reason why a job waits; they replace it if no other node is left."""
    more = [f"and {len(closed) - _MOST_TOLD} more"] if len(closed) > _MOST_TOLD else []
    words = "; ".join([*closed[:_MOST_TOLD], *more])
    return f"{reason}; {words}" if any_left else words
