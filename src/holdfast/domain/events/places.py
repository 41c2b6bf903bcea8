"""The events of the places that jobs run at."""

from __future__ import annotations

from holdfast.domain.record import Struct


class NodeLost(Struct, frozen=True):
    """Jobs were lost with the place they ran at; who was there at loss after loss is suspected."""

    executor: str
    nodes: tuple[str, ...]
    taken: int
    """How many jobs were lost."""
    longest_s: float = 0.0
    """How long the one had been there that had been there longest."""
    jobs: tuple[tuple[str, float], ...] = ()
    """`[job, seconds]`: how long each had been there; of very many only those that came last."""


class NodeCordoned(Struct, frozen=True):
    """An operator has nothing more placed on a node, or has it emptied: what runs there goes on elsewhere."""

    node: str
    drain: bool = False
    reason: str = ""


class NodeUncordoned(Struct, frozen=True):
    """An operator let work onto a node again."""

    node: str


class DeviceCordoned(Struct, frozen=True):
    """A device is given to nobody from here on."""

    executor: str
    node: str
    device: str
    reason: str
    """The line that shows its fault, or what a person says."""
    job: str = ""
    """The id of the job whose run printed it."""
    actor: str = ""
    """Who asked for it, if a person did."""


class DeviceUncordoned(Struct, frozen=True):
    """A device is given away again."""

    executor: str
    node: str
    device: str


PlaceEvent = NodeLost | NodeCordoned | NodeUncordoned | DeviceCordoned | DeviceUncordoned
