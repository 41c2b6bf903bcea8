"""What everybody in a world has around them, whatever they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.store import Store
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.trace import FaultTrace


class Scene(NamedTuple):
    """Where people are."""

    store: Callable[[], Store]
    """Returns the store that is open now."""
    agenda: Agenda
    """The world's time."""
    trace: FaultTrace
    willing: Callable[[Callable[[], None]], Callable[[], None]]
    """Wraps an action so that it is tried again when the disk is full."""
