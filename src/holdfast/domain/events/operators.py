"""The events of policies, queues, categories and settings, and of the audit log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PolicyCreated:
    """A retry policy was created."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class PolicyUpdated:
    """A retry policy has a new revision; it applies to failures judged from now on."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class PolicyDeleted:
    """A retry policy was deleted."""

    name: str
    revision: int
    """The last one."""


@dataclass(frozen=True, slots=True)
class QueueCreated:
    """A queue was created."""

    name: str


@dataclass(frozen=True, slots=True)
class QueueUpdated:
    """A queue was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class QueueDeleted:
    """A queue was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryCreated:
    """A failure category was created."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryUpdated:
    """A failure category was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class CategoryDeleted:
    """A failure category was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class SettingsUpdated:
    """The operator's settings were changed."""

    global_max_retries: int | None = None
    default_policy: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """An action was written to the audit log."""

    actor: str
    action: str
    kind: str
    """What it was done to: ``job``, ``retry-policy``, ``queue``, ``failure-category``, ``settings``."""
    name: str
    """Which of them; a job by its id."""
    origin: str = ""
    request_id: str = ""


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
    | SettingsUpdated
)
