"""What all kinds of work have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from holdfast.domain.record import Struct
from holdfast.domain.terms.kinds import KindInfo

State = TypeVar("State")
"""What is remembered of a workload between two looks."""
Order = TypeVar("Order")
"""What it asks for: children and runs to start, stop, resize or restart."""
Note = TypeVar("Note")
"""An event it writes down."""
Decided = TypeVar("Decided")
"""A decision about a failure, with what it is about."""


class Result(Struct, Generic[State, Order, Note, Decided], frozen=True, kw_only=True):
    """What ``reconcile`` returns for a workload of any kind; it is stored before any order is carried out."""

    state: State
    orders: tuple[Order, ...] = ()
    events: tuple[Note, ...] = ()
    decisions: tuple[Decided, ...] = ()
    wake_at: float | None = None
    """When to reconcile again although nothing happens."""
    expires_at: float | None = None
    """When to forget it; only of one that has ended."""


class Workload(Struct, frozen=True):
    """What is stored of a workload of any kind; its kind's record adds what only that kind has."""

    id: str
    """Of a job for kinds whose workloads are jobs."""
    owner: str = ""
    """Id of the workload it is part of, if any; fixed, like its name and the time it was created."""
    name: str = ""
    """Unique among the workloads of its kind; empty where its job has the name."""
    generation: int = 1
    """Grows with every change of what it should be."""
    spec: str = ""
    """What it should be (``compiled.codec``); empty where its job says so."""
    manifest: str = ""
    """What that was compiled from, for people."""
    deleting: bool = False
    """It is removed as soon as its programs have stopped."""
    expires_at: float | None = None
    """When it is forgotten, once it has ended; ``None`` leaves that to the operator's retention."""
    version: int = 1
    """Grows with every request about it, when it is made; only the store changes it."""
    created_at: float = 0.0
    updated_at: float = 0.0
    submitted_by: str = ""
    """Whose it is: who submitted it; fixed, and empty where its job says so."""
    submitter_uid: int | None = None
    """The number of that one's Unix account, where there is one; fixed."""
    group: str = ""
    """What it is found by together with others; fixed, and empty where its job says so."""
    queue: str = ""
    """In which its jobs wait; fixed, and empty where its job says so."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    """What messages call it."""

    @property
    def resource_version(self) -> str:
        """Unique forever, even if another workload takes this one's name."""
        return f"{self.id}.{self.version}"

    @property
    def last_runs(self) -> tuple[str, ...]:
        """Uids of runs it still needs although they may have ended."""
        return ()


class Owner(Workload, frozen=True, kw_only=True):
    """What is stored of a workload that is made of others; its kind says what its state is."""

    state: Any = None

    info: ClassVar[KindInfo]
    """What people meet of its kind."""

    def phase(self, spec: Any) -> str:  # noqa: ANN401 - of its kind
        """Say in a word of its kind's where it is, given what it should be."""
        del spec
        return "Deleting" if self.deleting else self.ended or "Running"

    @property
    def ended(self) -> str:
        """How it has ended; empty until then, and for what never ends by itself."""
        return ""

    @property
    def outcome(self) -> str:
        """How it has ended, in the words of jobs; empty until then."""
        return self.ended

    @property
    def ended_because(self) -> str:
        """Why it has ended so; empty where nothing says."""
        return ""

    @property
    def held_because(self) -> str:
        """Why it goes on only when it is released; empty where it does by itself."""
        return ""

    @property
    def counts(self) -> Mapping[str, int]:
        """Count what it is made of by how that has ended, and its restarts, if it has any."""
        return {}

    @property
    def started_at(self) -> float | None:
        """When it began, where that is known."""
        return None


class Quarantined(Struct, frozen=True):
    """A workload that is left alone because handling it failed; no other is affected."""

    id: str
    kind: str
    since: float
    message: str
    """What failed, and how."""
