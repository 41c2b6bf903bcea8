"""What all kinds of work have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from holdfast.domain.record import Struct
from holdfast.domain.terms.kinds import KindInfo

State = TypeVar("State")
"""The state of a workload between two looks."""
Order = TypeVar("Order")
"""An order: a child or run to start, stop, resize or restart."""
Note = TypeVar("Note")
"""An event."""
Decided = TypeVar("Decided")
"""A decision about a failure, with its subject."""


class Result(Struct, Generic[State, Order, Note, Decided], frozen=True, kw_only=True):
    """The result of ``reconcile`` for a workload of any kind; it is stored before any order is carried out."""

    state: State
    orders: tuple[Order, ...] = ()
    events: tuple[Note, ...] = ()
    decisions: tuple[Decided, ...] = ()
    wake_at: float | None = None
    """When to reconcile again even if nothing happens."""
    expires_at: float | None = None
    """When to delete a workload that has ended."""


class Workload(Struct, frozen=True):
    """The stored record of a workload of any kind, which each kind extends."""

    id: str
    """The job's id, for kinds whose workloads are jobs."""
    owner: str = ""
    """The id of the workload it is part of, if any; fixed, like its name and creation time."""
    name: str = ""
    """Unique among the workloads of its kind; empty if its job has the name."""
    generation: int = 1
    """Grows with every change of its specification."""
    spec: str = ""
    """Its specification (``compiled.codec``); empty if its job has it."""
    manifest: str = ""
    """The manifest it was compiled from, for people."""
    deleting: bool = False
    """It is removed as soon as its programs have stopped."""
    expires_at: float | None = None
    """When it is deleted after its end; ``None`` leaves that to the operator's retention."""
    version: int = 1
    """Grows with every request about it; only the store changes it."""
    created_at: float = 0.0
    updated_at: float = 0.0
    submitted_by: str = ""
    """Its owner, who submitted it; fixed, and empty if its job has it."""
    submitter_uid: int | None = None
    """The uid of the owner's Unix account, if there is one; fixed."""
    group: str = ""
    """The group by which it is found together with others; fixed, and empty if its job has it."""
    queue: str = ""
    """The queue of its jobs; fixed, and empty if its job has it."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    """What messages call it."""

    @property
    def resource_version(self) -> str:
        """Unique forever, even if another workload takes this one's name."""
        return f"{self.id}.{self.version}"

    @property
    def last_runs(self) -> tuple[str, ...]:
        """Uids of runs that it still needs although they may have ended."""
        return ()


class Owner(Workload, frozen=True, kw_only=True):
    """The stored record of a workload made of jobs; its kind defines its state."""

    state: Any = None

    info: ClassVar[KindInfo]
    """Its kind's names and states, as people see them."""

    def phase(self, spec: Any) -> str:  # noqa: ANN401 - of its kind
        """Return its phase, given its specification."""
        del spec
        return "Deleting" if self.deleting else self.ended or "Running"

    @property
    def ended(self) -> str:
        """How it ended; empty until then, and for a kind that never ends by itself."""
        return ""

    @property
    def outcome(self) -> str:
        """How it ended, as a job's state; empty until then."""
        return self.ended

    @property
    def ended_because(self) -> str:
        """Why it ended like this; empty if unknown."""
        return ""

    @property
    def held_because(self) -> str:
        """Why it is held; empty if it is not."""
        return ""

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of its parts by how they ended, and of its restarts."""
        return {}

    @property
    def started_at(self) -> float | None:
        """When it started, if known."""
        return None


class Quarantined(Struct, frozen=True):
    """A workload that is not reconciled because an error occurred; no other is affected."""

    id: str
    kind: str
    since: float
    message: str
    """The error."""
