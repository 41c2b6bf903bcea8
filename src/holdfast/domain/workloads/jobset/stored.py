"""The durable records of job sets: the set itself and its log."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.domain.workloads.jobset.state import Event, JobSetState, SetDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """One job set."""

    id: str
    name: str
    """Unique among existing job sets."""
    created_at: float
    manifest: str
    """As it is in force now, canonical JSON, for people."""
    spec: str = ""
    """What the manifest was compiled into (``compiled.codec``)."""
    lenient: bool = False
    """Whether it was read leniently, and will be again."""
    generation: int = 1
    """Grows with every change of the manifest."""
    updated_at: float = 0.0
    deleting: bool = False
    """It is removed as soon as its programs have stopped."""
    state: JobSetState = field(default_factory=JobSetState)
    version: int = 1
    """Grows with every request about it, when it is made; only the store changes it."""

    @property
    def resource_version(self) -> str:
        """Unique forever, even if another set takes this one's name."""
        return f"{self.id}.{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLogEntry:
    """One decision about a job of a set, or one event of the set."""

    set_id: str
    at: float
    what: SetDecision | Event
    seq: int = 0
    """Given by the store; in order over all sets."""
