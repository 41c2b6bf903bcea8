"""The exchange between executor and controller: full observed set in, full desired set out.

Complete state each way, so that a lost, late or repeated message heals itself (architecture decision 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.containers import UNKNOWN, EngineInfo
from holdfast.domain.placement.pressure import Pressure  # noqa: TC001 - the codec of messages looks it up
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.engine import NodeInfo, Observation, RunOrder, StopReason


class DesiredRun(Struct, frozen=True):
    """A run that the controller wants to exist or to stop; a run that it does not list must not be kept."""

    order: RunOrder
    stop: StopReason | None = None
    """Why to stop it, within ``order.grace_s``; ``None`` to keep it."""
    prepare: bool = False
    """Whether it is only to be prepared so far, by an engine that can."""


class ExchangeRequest(Struct, frozen=True):
    """An executor's report."""

    executor: str
    sequence: int
    """Grows with every exchange of one incarnation; both sides ignore older messages than the last."""
    nodes: Sequence[NodeInfo]
    """Its places with their whole capacity."""
    observed: Mapping[str, Observation]
    """All runs that it has and was not told to forget, by uid."""
    incarnation: float = 0.0
    """When the executor's process started; requests of a later process are newer, whatever their sequence."""
    acked: str | None = None
    """The ``controller_epoch`` of the last answer that this incarnation received; ``None`` before the first. The
    observations were made after that controller began.
    """
    engine: EngineInfo = UNKNOWN
    """The engine of its places."""
    pressure: Pressure | None = None
    """The pressure on its machine; all its places are on one machine."""


class ExchangeResponse(Struct, frozen=True):
    """The controller's answer, once the report is durable."""

    sequence: int
    """The sequence of the request."""
    controller_epoch: str
    """The controller that answered: each one built from the store has a new name."""
    desired: Mapping[str, DesiredRun] = field(default_factory=dict)
    """All runs that the executor should have; finished runs missing here may be forgotten, others are stopped."""


class ExchangeTransport(Protocol):
    """Carries exchanges; within the process today, over a network later."""

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Deliver the observed runs and return the desired ones.

        Raises:
            Unavailable: The controller cannot be reached; it may or may not have received the report.
        """

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Register a callback for when the desired runs may have changed; it is called from any thread."""
