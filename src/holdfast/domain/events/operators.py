"""The events of policies, queues, categories and settings, and of the audit log."""

from __future__ import annotations

from holdfast.domain.record import Struct


class PolicyCreated(Struct, frozen=True):
    """A retry policy was created."""

    name: str
    revision: int


class PolicyUpdated(Struct, frozen=True):
    """A retry policy has a new revision; it applies to failures judged from now on."""

    name: str
    revision: int


class PolicyDeleted(Struct, frozen=True):
    """A retry policy was deleted."""

    name: str
    revision: int
    """The last revision."""


class QueueCreated(Struct, frozen=True):
    """A queue was created."""

    name: str


class QueueUpdated(Struct, frozen=True):
    """A queue was changed."""

    name: str


class QueueDeleted(Struct, frozen=True):
    """A queue was deleted."""

    name: str


class CategoryCreated(Struct, frozen=True):
    """A failure category was created."""

    name: str


class CategoryUpdated(Struct, frozen=True):
    """A failure category was changed."""

    name: str


class CategoryDeleted(Struct, frozen=True):
    """A failure category was deleted."""

    name: str


class NotifierCreated(Struct, frozen=True):
    """A notifier was created."""

    name: str


class NotifierUpdated(Struct, frozen=True):
    """A notifier was changed."""

    name: str


class NotifierDeleted(Struct, frozen=True):
    """A notifier was deleted."""

    name: str


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


CatalogueEvent = (
    PolicyCreated
    | PolicyUpdated
    | PolicyDeleted
    | QueueCreated
    | QueueUpdated
    | QueueDeleted
    | CategoryCreated
    | CategoryUpdated
    | CategoryDeleted
    | NotifierCreated
    | NotifierUpdated
    | NotifierDeleted
    | SettingsUpdated
    | SchedulingPaused
    | SchedulingResumed
)
