"""Where every event is registered: the class of one says its name, its version and what it is about.

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
    """Something that can happen."""


E = TypeVar("E", bound=Event)


class EventType(NamedTuple):
    """What is registered of an event."""

    name: str
    """``<what>.<happened>``."""
    kind: type[Event]
    version: int
    """Of its fields' meaning."""
    about: str
    """The collection, in addresses, of what it is about; empty for what is in none."""
    name_field: str
    """The field that names one there."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of its fields."""
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
    """Something that happened and is to be written in the transaction that makes it true."""

    job_id: str | None
    """The job it is about; ``None`` for what is about no job."""
    at: float
    event: Event
    group: str = ""
    """Of what it is about; of a job known by the commit."""
    owner: Workload | None = None
    """The array or the job set it is about, whose it is then; of what is about a job the job says so."""


class StoredEvent(NamedTuple):
    """An event as it was written."""

    seq: int
    """Its place among all events: grows in the order of commits, with gaps."""
    job_id: str | None
    job_seq: int | None
    """Its place among its job's events: 1, 2, 3, without gaps."""
    at: float
    event: Event
    group: str = ""
    """Of what it is about, if that has one."""

    @property
    def type(self) -> EventType:
        """Return what is registered of it."""
        return BY_KIND[type(self.event)]
