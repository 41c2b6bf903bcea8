"""The events of job sets."""

from __future__ import annotations

from holdfast.domain.record import Struct


class JobSetCreated(Struct, frozen=True):
    """A job set was accepted."""

    job_set: str
    """Its id, in this and all following events."""
    name: str
    jobs: int = 0
    submitted_by: str = ""
    """Whose it is."""


class JobSetChanged(Struct, frozen=True):
    """A user changed a job set's manifest, or suspended, resumed or restarted it."""

    job_set: str
    name: str
    change: str
    """``updated``, ``suspended``, ``resumed``, ``restarted``."""
    detail: str = ""


class JobSetDecided(Struct, frozen=True):
    """A failed job of a set was judged."""

    job_set: str
    name: str
    job: str
    """Name of the job that failed."""
    restart: int
    """Restarts of the set when that job was created."""
    job_restart: int
    """Restarts of the job alone when it was created."""
    action: str
    """Empty when the set has no failure policy."""
    granted: bool
    reason: str
    message: str
    rule: str | None = None
    delay_s: float = 0.0


class JobSetNoted(Struct, frozen=True):
    """Something to know about a job set, in the words of Kubernetes' events."""

    job_set: str
    name: str
    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


class JobSetEnded(Struct, frozen=True):
    """A job set is over; final."""

    job_set: str
    name: str
    outcome: str
    """``Completed`` or ``Failed``."""
    reason: str
    message: str


class JobSetDeleted(Struct, frozen=True):
    """A job set was deleted, by a user or because its time to live expired."""

    job_set: str
    name: str


JobSetEvent = JobSetCreated | JobSetChanged | JobSetDecided | JobSetNoted | JobSetEnded | JobSetDeleted
