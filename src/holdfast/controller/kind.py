"""What the controller needs of a kind of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.placement import PlaceKey
    from holdfast.ports.store import Request, RequestKind, Snapshot


class Pace(NamedTuple):
    """How many workloads of a kind a tick reconciles at least, if there are so many, and at most."""

    least: int
    most: int


ForEach: TypeAlias = "Callable[[str, Callable[[], None]], None]"
"""Does something with one workload, in such a way that no other notices when that fails."""


class Kind(Protocol):
    """Looks after all workloads of one kind."""

    name: str
    pace: Pace

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Take in the workloads that were going on when the last controller stopped, each by itself."""
        ...

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Bring workloads to where they should be; doing it twice does no more than doing it once."""
        ...

    def ask(self, request: Request, key: str, now: float) -> None:
        """Act on a request about one workload; one that no longer applies is dropped."""
        ...


class OwnerKind(Kind, Protocol):
    """A kind whose workloads are made of others."""

    def asks(self, kind: RequestKind) -> bool:
        """Whether a request of this kind is about workloads of this kind."""
        ...


class JobKind(Kind, Protocol):
    """A kind whose workloads are jobs, with runs that need places."""

    has_pods: bool
    """Whether their runs come and go one by one."""

    def index(self, job: Job) -> None:
        """Take in how a job stands: whether it waits for a place, and when it is due."""
        ...

    def admit(self, job: Job) -> None:
        """Take in a job that was just submitted."""
        ...

    def placed(self, placements: Iterable[tuple[str, tuple[PlaceKey, ...]]], now: float) -> None:
        """Give those that waited the places they got."""
        ...

    def blocked(self, key: str, now: float) -> None:
        """Record why one waits that got no place; its job says for what, and that is news."""
        ...
