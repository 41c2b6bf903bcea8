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
    """A run the controller wants to exist, or wants stopped; one it does not name must not be kept."""

    order: RunOrder
    stop: StopReason | None = None
    """Set when it is to be stopped within ``order.grace_s``."""
    prepare: bool = False
    """Whether it is only to be prepared so far, by an engine that does that apart from starting."""


class ExchangeRequest(Struct, frozen=True):
    """What an executor reports."""

    executor: str
    sequence: int
    """Grows with every exchange of one incarnation; both sides ignore what is older than the last."""
    nodes: Sequence[NodeInfo]
    """Its places and their whole capacity."""
    observed: Mapping[str, Observation]
    """Every run it has and has not been told to forget, by uid."""
    incarnation: float = 0.0
    """When the executor's process started; requests of a later one are newer, whatever their sequence."""
    acked: str | None = None
    """The ``controller_epoch`` of the last answer this incarnation took in; ``None`` before the first. What is observed
    here was observed after that controller began."""
    engine: EngineInfo = UNKNOWN
    """What runs things on its places."""
    pressure: Pressure | None = None
    """What its machine runs out of; all its places are of one machine."""


class ExchangeResponse(Struct, frozen=True):
    """What the controller answers, once the report is durable."""

    sequence: int
    """Of the request this answers."""
    controller_epoch: str
    """Names the controller that answered: another name each time one was built from the store."""
    desired: Mapping[str, DesiredRun] = field(default_factory=dict)
    """Every run the executor should have; finished runs missing here may be forgotten, others are stopped."""


class ExchangeTransport(Protocol):
    """Carries exchanges; in process here, over a network later."""

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Deliver the observed set and return the desired one.

        Raises:
            Unavailable: The controller cannot be reached; nothing is known of what it received.
        """

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Register a hint to call, from any thread, when the executor's desired set may have changed."""
