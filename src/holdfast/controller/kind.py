"""What the controller needs of a kind of work."""

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
    """Fewest, if there are as many, and most workloads of a kind that a tick reconciles."""

    least: int
    most: int


ForEach: TypeAlias = "Callable[[str, Callable[[], None]], None]"
"""Does something with one workload; a failure affects no other."""


class Taking(NamedTuple):
    """That a job is to leave its place, or one of them."""

    why: Interruption
    reason: str = ""
    """For people."""
    node: str = ""
    """Only what it has there; wherever it is if empty."""
    uid: str = ""
    """Only this run, of a kind whose runs come and go one by one."""


class Kind(Protocol):
    """Looks after all workloads of one kind."""

    name: str
    pace: Pace

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Restore the workloads that were in progress when the last controller stopped, each by itself."""
        ...

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Bring workloads to where they should be; idempotent."""
        ...

    def ask(self, request: Request, key: str, now: float) -> None:
        """Act on a request about one workload; one that no longer applies is dropped."""
        ...


class OwnerKind(Kind, Protocol):
    """A kind whose workloads are made of other workloads; it may be asked about one that is not in memory."""

    @property
    def works(self) -> Mapping[str, object]:
        """What is in memory of workloads that are new or not over, by id."""
        ...

    def see_gang(self, job: Job) -> None:
        """Note how a job that is a gang looks now; one that is over is shown once."""
        ...

    def tell(self, row: Any, what: str, now: float) -> None:  # noqa: ANN401 - a record of this kind
        """Emit an event: a workload was ``updated``, ``suspended`` or ``resumed``, has ``ended`` or was ``deleted``."""
        ...


class JobKind(Kind, Protocol):
    """A kind whose workloads are jobs, with runs that need places."""

    has_pods: bool
    """Whether their runs come and go one by one."""

    def index(self, job: Job) -> None:
        """Index a job by whether it waits for a place, and when it is due."""
        ...

    def admit(self, job: Job) -> None:
        """Add a job that was just submitted."""
        ...

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Give those with these keys the places they got."""
        ...

    # what the workload a job is part of may ask for

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Begin a job that was submitted, or begin it anew."""
        ...

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """End a job's attempt; at once when nothing of it runs, else once that has stopped."""
        ...

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Stop a job and keep it, or let it go on."""
        ...

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Stop what a job has somewhere, which did nothing wrong; it may go on elsewhere, by the kind's own rules."""
        ...

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Give a job another size."""
        ...

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """End for good a job of which nothing runs; ``otherwise`` is why, if it has not ended by itself."""
        ...

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Record why one still waits for a place, when its job's reason has changed; or why it will get none."""
        ...
