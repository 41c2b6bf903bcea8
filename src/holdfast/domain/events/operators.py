"""The events of operators' entries and settings, of the audit log, and of nodes and devices."""

from __future__ import annotations

from types import new_class
from typing import TYPE_CHECKING, Any

from holdfast.domain.events.registry import Event, event
from holdfast.domain.terms.entries import ENTRIES

if TYPE_CHECKING:
    from holdfast.domain.terms.entries import EntryInfo


class EntryEvent(Event, frozen=True):
    """An operator's entry was created, updated or deleted."""

    name: str


class RevisionEvent(EntryEvent, frozen=True):
    """The same for entries with revisions; a deleted entry has its last revision."""

    revision: int


def _event_of(info: EntryInfo, act: str) -> type[Any]:
    base, article = RevisionEvent if info.versioned else EntryEvent, "An" if info.noun[0] in "aeiou" else "A"
    members = {"__doc__": f"{article} {info.noun} was {act}."}
    name = f"{info.family.title()}{act.title()}"
    kind = new_class(name, (base,), {"frozen": True}, lambda own: own.update(members))
    return event(f"{info.family}.{act}", about=info.plural)(kind)


ENTRY_EVENTS = {
    subject: {act: _event_of(info, act) for act in ("created", "updated", "deleted")}
    for subject, info in ENTRIES.items()
}
"""The events of each kind of entry, by what happened."""


@event("settings.updated")
class SettingsUpdated(Event, frozen=True):
    """The operator's settings were changed."""

    global_max_retries: int | None = None
    default_policy: str | None = None


@event("scheduling.paused")
class SchedulingPaused(Event, frozen=True):
    """The server was paused, as after a restore: nothing is started until it is resumed, and what runs continues."""

    reason: str


@event("scheduling.resumed")
class SchedulingResumed(Event, frozen=True):
    """The server's pause ended."""


@event("operator.acted")
class OperatorActed(Event, frozen=True):
    """An action was written to the audit log."""

    actor: str
    action: str
    kind: str
    """What it was done to: ``job``, ``retry-policy``, ``queue``, ``failure-category``, ``notifier``, ``settings``..."""
    name: str
    """Its name, or a job's id."""
    origin: str = ""
    request_id: str = ""
    detail: str = ""
    """Why, or how much."""


@event("node.lost", about="executors", named_by="executor")
class NodeLost(Event, frozen=True):
    """Jobs were lost together with their nodes; a job that was part of several losses in a row is suspected."""

    executor: str
    nodes: tuple[str, ...]
    taken: int
    """How many jobs were lost."""
    longest_s: float = 0.0
    """How long the longest-running of them had been there."""
    jobs: tuple[tuple[str, float], ...] = ()
    """`[job, seconds]`: how long each had been running there; if very many, only the latest."""


@event("node.cordoned", about="nodes", named_by="node")
class NodeCordoned(Event, frozen=True):
    """An operator cordoned a node, or drained it: what runs there continues elsewhere."""

    node: str
    drain: bool = False
    reason: str = ""


@event("node.uncordoned", about="nodes", named_by="node")
class NodeUncordoned(Event, frozen=True):
    """An operator uncordoned a node."""

    node: str


@event("node.short", about="nodes", named_by="node")
class NodeShort(Event, frozen=True):
    """A node lacks what programs need to start, or its machine runs out of it: it gets one job at a time, or none."""

    executor: str
    node: str
    of: str
    message: str
    """Why the program could not be started, or what its machine had left."""


@event("node.recovered", about="nodes", named_by="node")
class NodeRecovered(Event, frozen=True):
    """A node is no longer short of anything."""

    executor: str
    node: str
    of: str
    lasted_s: float


@event("device.cordoned", about="devices", named_by="device")
class DeviceCordoned(Event, frozen=True):
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


@event("device.uncordoned", about="devices", named_by="device")
class DeviceUncordoned(Event, frozen=True):
    """A device can be given to runs again."""

    executor: str
    node: str
    device: str
