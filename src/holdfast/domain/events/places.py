"""The events of the places that jobs run at."""

from __future__ import annotations

from holdfast.domain.record import Struct


class NodeLost(Struct, frozen=True):
    """Jobs were lost together with their nodes; a job that was running at loss after loss is suspected."""

    executor: str
    nodes: tuple[str, ...]
    taken: int
    """How many jobs were lost."""
    longest_s: float = 0.0
    """How long the longest-running of them had been there."""
    jobs: tuple[tuple[str, float], ...] = ()
    """`[job, seconds]`: how long each had been running there; if very many, only the latest."""


class NodeCordoned(Struct, frozen=True):
    """An operator cordoned a node, or drained it: what runs there continues elsewhere."""

    node: str
    drain: bool = False
    reason: str = ""


class NodeUncordoned(Struct, frozen=True):
    """An operator uncordoned a node."""

    node: str


class NodeShort(Struct, frozen=True):
    """A node lacks what starting a program takes, or its machine runs out of it: it gets one job at a time, or none."""

    executor: str
    node: str
    of: str
    message: str
    """Why the program could not be started, or what its machine had left."""


class NodeRecovered(Struct, frozen=True):
    """A node is no longer short of anything."""

    executor: str
    node: str
    of: str
    lasted_s: float


class DeviceCordoned(Struct, frozen=True):
    """A device is no longer given to any run."""

    executor: str
    node: str
    device: str
    reason: str
    """The line that shows its fault, or the reason a user gave."""
    job: str = ""
    """The id of the job whose run printed that line."""
    actor: str = ""
    """Who requested it, if a user did."""


class DeviceUncordoned(Struct, frozen=True):
    """A device can be given to runs again."""

    executor: str
    node: str
    device: str


PlaceEvent = NodeLost | NodeCordoned | NodeUncordoned | NodeShort | NodeRecovered | DeviceCordoned | DeviceUncordoned
