"""Who did what: the words of the audit log.

Decides what is remembered of an operator's action, and nothing secret is: names and reasons, never what a
manifest holds. Leaves keeping it to ``storage`` and telling callers apart to the ways in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Act(StrEnum):
    """What people do to things."""

    CREATE = "create"
    """Wrote something new."""
    UPDATE = "update"
    """Changed something that was there."""
    DELETE = "delete"
    """Took something away."""
    APPLY = "apply"
    """Wrote something, new or not; only where it was refused, so that neither came true."""
    CANCEL = "cancel"
    """Asked for a job to be ended."""
    HOLD = "hold"
    """Asked for a waiting job to be held."""
    RELEASE = "release"
    """Asked for a held job to go on."""


class Subject(StrEnum):
    """What it is done to."""

    JOB = "job"
    POLICY = "retry-policy"
    QUEUE = "queue"
    CATEGORY = "failure-category"
    SETTINGS = "settings"


ACCEPTED = "accepted"
"""The outcome of what was done; anything else is the code of the refusal."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for something, from where and when."""

    actor: str
    """``user:<name>`` inside a process of that user, ``token:<name>`` for whoever showed a token."""
    at: float
    origin: str = ""
    """The address it came from, or ``in-process``."""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action in the log."""

    caller: Caller
    act: Act
    subject: Subject
    name: str
    """Of what it was done to; of a job its id."""
    outcome: str = ACCEPTED
    detail: str = ""
    """The reason that was given, or the message of the refusal."""


class StoredAuditEntry(NamedTuple):
    """An action as it was written."""

    seq: int
    entry: AuditEntry
