"""The registry of events: each class registers its name, its version and its subject.

Other systems follow Holdfast by these names. A stored event keeps its meaning forever: a field is only ever added with
a default, and any other change is a new version. Names are stored, so one is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.workloads.base import Workload


class Event(Struct, frozen=True):
    """The base of all events."""


E = TypeVar("E", bound=Event)


class EventType(NamedTuple):
    """The registration of an event."""

    name: str
    """``<what>.<happened>``."""
    kind: type[Event]
    version: int
    """The version of its fields' meaning."""
    about: str
    """The collection of its subject in addresses, if there is one."""
    name_field: str
    """The field that names the subject there."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields."""
        return self.kind.__struct_fields__


BY_NAME: dict[str, EventType] = {}
BY_KIND: dict[type[Event], EventType] = {}


def event(name: str, *, version: int = 1, about: str = "", named_by: str = "name") -> Callable[[type[E]], type[E]]:
    """Register a class of events; the arguments are those of ``EventType``."""

    def register(kind: type[E]) -> type[E]:
        BY_NAME[name] = BY_KIND[kind] = EventType(name, kind, version, about, named_by)
        return kind

    return register


class EventRecord(NamedTuple):
    """An event to be written, in the transaction that makes it true."""

    job_id: str | None
    """The job it is about, if any."""
    at: float
    event: Event
    group: str = ""
    """The group of its subject; for a job, the commit adds it."""
    owner: Workload | None = None
    """The array or job set it is about, which determines its owner; for an event about a job, the job does."""


class StoredEvent(NamedTuple):
    """An event as written."""

    seq: int
    """Its number among all events, which grows in the order of commits, with gaps."""
    job_id: str | None
    job_seq: int | None
    """Its number among its job's events: 1, 2, 3, without gaps."""
    at: float
    event: Event
    group: str = ""
    """The group of its subject, if it has one."""

    @property
    def type(self) -> EventType:
        """Its registration."""
        return BY_KIND[type(self.event)]
