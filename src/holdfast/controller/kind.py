"""What the controller requires of a kind of workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.lifecycle import Interruption
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.children import CreateChild
    from holdfast.ports.requests import Request
    from holdfast.ports.store import Snapshot


class Pace(NamedTuple):
    """The fewest workloads of a kind that a tick reconciles, if there are as many, and the most."""

    least: int
    most: int


ForEach: TypeAlias = "Callable[[str, Callable[[], None]], None]"
"""Handles one workload in isolation: its failure affects no other."""


class Taking(NamedTuple):
    """A request that a job leave a place."""

    why: Interruption
    reason: str = ""
    """The reason shown to people."""
    node: str = ""
    """The node to leave; empty for every node."""
    uid: str = ""
    """The only run to stop, for kinds whose runs come and go one by one."""


class Kind(Protocol):
    """Manages all workloads of one kind."""

    name: str
    pace: Pace

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Restore the unfinished workloads, each in isolation."""
        ...

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Bring workloads to their desired state; idempotent."""
        ...

    def ask(self, request: Request, key: str, now: float) -> None:
        """Act on a request about one workload; a request that no longer applies is dropped."""
        ...


class OwnerKind(Kind, Protocol):
    """A kind whose workloads own other workloads; it may be asked about one that is not in memory."""

    @property
    def works(self) -> Mapping[str, object]:
        """The new and unfinished workloads in memory, by id."""
        ...

    def see_gang(self, job: Job) -> None:
        """Note the present state of a gang; an ended gang is reported once."""
        ...

    def tell(self, row: Any, what: str, now: float) -> None:  # noqa: ANN401 - a record of this kind
        """Emit an event: a workload was ``updated``, ``suspended`` or ``resumed``, has ``ended`` or was ``deleted``."""
        ...


class JobKind(Kind, Protocol):
    """A kind whose workloads are jobs, whose runs need places."""

    has_pods: bool
    """Whether its runs are pods that come and go one by one."""

    def index(self, job: Job) -> None:
        """Index a job by whether it waits for a place, and by when it is due."""
        ...

    def admit(self, job: Job) -> None:
        """Add a job that was just submitted."""
        ...

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Start the workloads with these keys on their places."""
        ...

    # What the owner of a job may ask for.

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Begin a submitted job, or begin it anew."""
        ...

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """Delete a job's attempt: at once if nothing of it runs, otherwise once it has stopped."""
        ...

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Suspend a job, or resume it."""
        ...

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Evict a job from a place through no fault of its own; its kind's rules decide whether it continues."""
        ...

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Change a job's size."""
        ...

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """End a job of which nothing runs for good; ``otherwise`` is the reason if it has not ended by itself."""
        ...

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Record why a job waits for a place if the reason has changed, or why it will get none."""
        ...
