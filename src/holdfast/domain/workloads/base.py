"""What all kinds of work have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")
"""What is remembered of a workload between two looks."""
Order = TypeVar("Order")
"""What it asks for: children and runs to start, stop, resize or restart."""
Note = TypeVar("Note")
"""An event it writes down."""
Decided = TypeVar("Decided")
"""A decision about a failure, with what it is about."""

GANG = "gang"
KUBEJOB = "kubejob"
JOBSET = "jobset"
UNREAD = "job"
"""The kind of a job whose kind is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[State, Order, Note, Decided]):
    """What ``reconcile`` returns for a workload of any kind; it is stored before any order is carried out."""

    state: State
    orders: tuple[Order, ...] = ()
    events: tuple[Note, ...] = ()
    decisions: tuple[Decided, ...] = ()
    wake_at: float | None = None
    """When to reconcile again although nothing happens."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A workload that is left alone because handling it failed; no other is affected."""

    id: str
    kind: str
    since: float
    message: str
    """What failed, and how."""
