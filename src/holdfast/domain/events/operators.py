"""The events of policies, queues, categories and settings, and of the audit log."""

from __future__ import annotations

from types import new_class
from typing import TYPE_CHECKING, Any

from holdfast.domain.record import Struct
from holdfast.domain.terms.entries import ENTRIES

if TYPE_CHECKING:
    from holdfast.domain.terms.entries import EntryInfo


class EntryEvent(Struct, frozen=True):
    """Something that operators write was created, updated or deleted."""

    name: str


class RevisionEvent(EntryEvent, frozen=True):
    """The same, of something that has revisions; a deleted one has its last."""

    revision: int


def _event_of(info: EntryInfo, act: str) -> type[Any]:
    base, article = RevisionEvent if info.versioned else EntryEvent, "An" if info.noun[0] in "aeiou" else "A"
    members = {"__doc__": f"{article} {info.noun} was {act}."}
    return new_class(f"{info.family.title()}{act.title()}", (base,), {"frozen": True}, lambda own: own.update(members))


ENTRY_EVENTS = {
    subject: {act: _event_of(info, act) for act in ("created", "updated", "deleted")}
    for subject, info in ENTRIES.items()
}
"""The events of each kind of entry, by what happened."""


class SettingsUpdated(Struct, frozen=True):
    """The operator's settings were changed."""

    global_max_retries: int | None = None
    default_policy: str | None = None


class SchedulingPaused(Struct, frozen=True):
    """Nothing is started until it is resumed, as after a restore; what runs continues."""

    reason: str


class SchedulingResumed(Struct, frozen=True):
    """What waits is started again."""


class OperatorActed(Struct, frozen=True):
    """An action was written to the audit log."""

    actor: str
    action: str
    kind: str
    """What it was done to: ``job``, ``retry-policy``, ``queue``, ``failure-category``, ``notifier``, ``settings``..."""
    name: str
    """Its name; a job's id."""
    origin: str = ""
    request_id: str = ""
    detail: str = ""
    """Why, or how much."""


CatalogueEvent = EntryEvent | SettingsUpdated | SchedulingPaused | SchedulingResumed
