"""The storage port, split by user: the controller, the APIs, readers, operators.

Only the controller writes lifecycle state, in one ``commit`` per tick. The APIs append jobs and requests and edit
the catalogue. Records are ``domain`` values; no row or session leaves an adapter.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.domain.access import Principal  # noqa: TC001 - the record looks it up
from holdfast.domain.record import Struct, field
from holdfast.ports.catalogue import CatalogueStore
from holdfast.ports.endpoints import EndpointStore
from holdfast.ports.events import AuditStore, EventStore
from holdfast.ports.names import NameStore
from holdfast.ports.notifications import NotificationStore
from holdfast.ports.overview import OverviewStore, StateOfJob
from holdfast.ports.retention import RetentionStore
from holdfast.ports.workloads import Left, Rerun, W, WorkloadQueries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped
    from holdfast.domain.audit import Caller
    from holdfast.domain.events.registry import EventRecord, StoredEvent
    from holdfast.domain.job import Attempt, Job, JobState, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.workloads.base import Quarantined, Workload
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.errors import HoldfastError
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.names import ExternalName
    from holdfast.ports.requests import Request


RECENT_EVENTS = 50_000
"""How far a starting controller looks back in the event log."""


class News(NamedTuple):
    """Whether anybody wants something of the controller."""

    catalogue_version: int
    is_asked: bool
    """Whether there are requests that are not handled yet."""


class Submission(Struct, frozen=True):
    """Jobs to append, all or none."""

    jobs: Sequence[Job]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by job id, for filtering."""
    idempotency_key: str | None = None
    fingerprint: str = ""
    """Of the request the key was sent with."""
    newest: str | None = None
    """What must be the id of the newest job of the first one's name, empty for none; ``None`` is not checked."""
    owner: Workload | None = None
    """The workload all of these jobs belong to; the request is to take it in, and it may have no jobs."""
    also: Sequence[Workload] = ()
    """Workloads of their own, to append and to take in with the jobs."""
    rerun: Rerun | None = None
    """What one of these runs again."""
    awaited: Collection[str] = ()
    """Ids of what these wait for: jobs and workloads that had not ended, and must still be there."""
    policies: Collection[str] = ()
    """Names of the retry policies that these name, which must still be there."""
    limited: Collection[str] = ()
    """Names of queues that limit what they take in."""
    caller: Caller | None = None
    """Who submits, for the audit log."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Keys of single jobs, by their ids: where one is known, the job it came with first is meant, none appended."""
    names: Mapping[str, ExternalName] = field(default_factory=dict)
    """What other systems call jobs, by their ids: where one is taken, the job that has it is meant, none appended."""
    callers: Mapping[str, Caller] = field(default_factory=dict)
    """Who asked for single jobs, by their ids, where that was not one request; for the audit log."""


class Changes(Struct, gc=True):
    """Everything one tick changed; one transaction. The last value of each record wins."""

    jobs: dict[str, Job] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    history: dict[tuple[str, str, int], HistoryRow] = field(default_factory=dict)
    """By (kind, id, seq); a merged row replaces its earlier self."""
    nodes: dict[tuple[str, str], Node] = field(default_factory=dict)
    """By (executor, name)."""
    handled: list[int] = field(default_factory=list)
    """Ids of requests acted on."""
    events: dict[int, EventRecord] = field(default_factory=dict)
    """In order, by a number that only tells them apart until they are written."""
    workloads: dict[str, Workload] = field(default_factory=dict)
    """By id, of any kind; each is there already, or is a job's."""
    forgotten: dict[str, None] = field(default_factory=dict)
    """Ids of workloads to forget, with their log; their jobs stay."""
    set_log: list[SetLogEntry] = field(default_factory=list)
    """What to append to the logs of job sets, in order."""
    quarantined: dict[str, Quarantined | None] = field(default_factory=dict)
    """By id of the workload; ``None``: it no longer is."""
    new_jobs: dict[str, Job] = field(default_factory=dict)
    """Jobs to append; ``seq`` is given by the store."""
    notifications: list[Notification] = field(default_factory=list)
    """What people are to be told of this; one that is known is left as it is."""
    epoch: int | None = None
    """What ``lead`` gave the writer; ``None`` is not checked, for whoever owns the store alone."""
    specs: dict[str, str] = field(default_factory=dict)
    """Specifications that were changed, by the id of the job."""
    priorities: dict[str, int] = field(default_factory=dict)
    """Likewise."""

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return any(_CONTENT(self))

    def of(self, kind: type[W]) -> dict[str, W]:
        """Return the changed workloads of one kind, by id."""
        return {key: workload for key, workload in self.workloads.items() if isinstance(workload, kind)}


_CONTENT = attrgetter(*(name for name in Changes.__struct_fields__ if name != "epoch"))
"""All that a commit writes; the epoch says who writes it."""


class Snapshot(Struct, frozen=True):
    """All a controller needs to continue after a restart."""

    jobs: Sequence[Job]
    """Every job that is not terminal, in order of submission."""
    attempts: Sequence[Attempt]
    """Every attempt that is not terminal."""
    runs: Sequence[Run]
    """Every run of those attempts' current dispatch, every other one of theirs that is not terminal, and the last of
    each pod with stored state."""
    history: Mapping[str, HistoryRow]
    """The last row of each of those attempts, and of those that jobs wait to have placed, by their id in it."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """By id, in order of names: those of the jobs above, and all that are no job's, ended ones too."""
    unreadable: Mapping[str, tuple[str, HoldfastError]] = field(default_factory=dict)
    """By id, the kind of each workload whose record cannot be read, and why."""
    quarantined: Mapping[str, Quarantined] = field(default_factory=dict)
    """By id of the workload."""
    losses: Sequence[StoredEvent] = ()
    """The ``node.lost`` events among the last ``RECENT_EVENTS``, in order."""

    def of(self, kind: type[W]) -> dict[str, W]:
        """Return the workloads of one kind, by id."""
        return {key: workload for key, workload in self.workloads.items() if isinstance(workload, kind)}


class RunsAs(Struct, frozen=True):
    """As whom a leader runs programs."""

    account: Principal | None = None
    """The one account that runs all; ``None``: each runs as who submitted it."""


class ControllerStore(Protocol):
    """What the one writer of lifecycle state needs."""

    def load(self) -> Snapshot:
        """Read everything that is still going on."""

    def mark(self) -> object:
        """Return, cheaply, a mark that equals an earlier one only if no request was made or catalogue changed since.

        It may differ after other writes, too; ``None`` means that this is unknown.
        """

    def news(self) -> News:
        """Return whether anybody wants something, where the mark does not rule it out."""

    def requests(self, *, limit: int) -> Sequence[Request]:
        """Return the oldest requests not handled yet, without removing them."""

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        """Return those jobs, in order of submission; unknown ids are left out."""

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through, in order."""

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return those workloads, by id; others are left out."""

    def left_to_end(self, key: str) -> Left:
        """Return what can be read of a job, or of a workload that is made of jobs, to end it."""

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""

    def children_of(self, owner: str) -> Sequence[Job]:
        """Return every job of a workload, in order of submission."""

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state: all, or those of a workload that is made of jobs."""

    def catalogue_version(self) -> int:
        """Return the catalogue's version, cheaply."""

    def catalogue(self) -> Catalogue:
        """Read the catalogue."""

    def lead(
        self,
        owner: str,
        ttl_s: float,
        now: float,
        *,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> int:
        """Become, or stay, the one writer of lifecycle state for ``ttl_s``; 0 s steps down.

        The lease says who should write; the epoch says who can, whatever any clock says. By the time this returns, no
        commit of an earlier call by the same owner is under way any more.

        Args:
            owner: Who: a name that no other process has or had.
            ttl_s: For how long, from when the store takes it.
            now: The caller's time; a store that has a clock of its own goes by that one.
            heir_of: Owners whose names begin with this are known to be dead, and keep nobody out.
            place: The data directory where the owner's jobs have their files, if they have any.
            runs_as: As whom the owner runs programs; where each once ran as who submitted it, that is remembered.

        Returns:
            The epoch to commit with: the same while the owner stays the same, else larger than every earlier one.

        Raises:
            NotLeader: Another owner's lease still runs; the message names it.
            Refused: Work here belongs to other accounts than the one that would run it.
            Unavailable: The disk is full, or the database is locked or away; nothing was changed.
        """

    def commit(self, changes: Changes) -> None:
        """Make all changes durable in one transaction, or none.

        Raises:
            Unavailable: The disk is full or the database is locked; nothing was changed.
            Uncertain: The answer of a database server was lost: all was changed, or nothing, and none of it twice.
            Conflict: Another owner leads since the changes' epoch; nothing was changed.
            Internal: A change is about a job or workload that does not exist; nothing was changed.
        """


class SubmissionStore(Protocol):
    """What the APIs may write, and what they compare it with."""

    def require_room(self, submission: Submission, now: float) -> None:
        """Make sure that queues would take something in, without noting that they did.

        Raises:
            QueueFull, RateLimited: A queue takes no more of it in.
        """

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Append jobs and the request to take them in, in one transaction; ``seq`` is given here.

        Returns:
            The ids of the jobs and of the workloads beside them; those of the first call when the idempotency key is
            known, and of the first job of each claimed key, or of the one that has a name.

        Raises:
            Conflict: The idempotency key is known with another fingerprint, a queue or a policy is gone, or another set
                has a job of the name of one of this set's.
            AlreadyExists: A job of that id is there already, a newer one of that name where that is checked, or a
                workload of that kind and name.
            QueueFull, RateLimited: A queue takes no more of it in; of what is submitted nothing is stored.
            NotFound, VersionConflict: An array whose tasks are to run again is gone, or another runs one of them again.
        """

    def append(self, request: Request, *, caller: Caller | None = None, version: int | None = None) -> None:
        """Append a request; with a caller, also to the audit log.

        The version of a workload that has a name of its own grows by one.

        Args:
            request: The request.
            caller: Who asks for it.
            version: That of the workload it is about; others may have asked for something meanwhile.

        Raises:
            NotFound: A version is given, and the workload is gone; or a job that is to be retried is.
            VersionConflict: It has another version.
            Conflict: A job is to be retried that is about to be already, or whose queue is gone.
        """


class JobFilter(Struct, frozen=True):
    """Which jobs to list; every field that is set must hold."""

    states: frozenset[JobState] | None = None
    queue: str | None = None
    name: str | None = None
    job_set: str | None = None
    """Id of the job set or the array they belong to."""
    labels: tuple[tuple[str, str], ...] = ()
    quarantined: bool = False
    """Only those that are quarantined."""
    reasoned: bool = False
    """Only those with a reason for their state."""
    tasks: bool = True
    """Also the tasks of arrays."""
    ids: frozenset[str] | None = None
    """Only those."""
    submitted_by: str | None = None
    """Only that one's."""
    group: Grouped | None = None
    named: Grouped | None = None
    """Only those that another system calls so, or below that."""
    seen: Seen | None = None
    """Only what somebody may know of; ``None``: everything."""


class Listed(Struct, frozen=True):
    """Jobs, and what is quarantined of them, at one instant."""

    jobs: Sequence[Job]
    quarantined: Mapping[str, Quarantined]
    """By id; others may be among them."""


class QueryStore(Protocol):
    """Readers' queries; every answer is a consistent snapshot."""

    def job(self, reference: str, *, seen: Seen | None = None) -> Job:
        """Find a job by id, by name (the newest of that name), or by a unique id prefix of 6 or more characters.

        ``NAME@PREFIX`` is the one job of that name whose id begins so, however few characters that takes. With ``seen``
        there are only those that somebody may know of.

        Raises:
            NotFound: None matches, or a prefix is ambiguous.
        """

    def jobs(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Sequence[Job]:
        """List jobs in order of submission, those with ``seq > after``."""

    def listed(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Listed:
        """List jobs as ``jobs`` does, with what is quarantined of them: what is asked most often costs one question."""

    def job_states(self, job_ids: Sequence[str]) -> Mapping[str, StateOfJob]:
        """Return the states of those jobs, cheaply; unknown ids are left out."""

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state: all, or those of a workload that is made of jobs."""

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""

    def run(self, uid: str) -> Run | None:
        """Return a run, if there is one."""

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return the workloads that are quarantined, by id."""

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""

    def running(self) -> Iterable[Run]:
        """List runs that are not terminal."""


class Store(
    ControllerStore,
    SubmissionStore,
    QueryStore,
    NameStore,
    EndpointStore,
    WorkloadQueries,
    CatalogueStore,
    EventStore,
    AuditStore,
    RetentionStore,
    OverviewStore,
    NotificationStore,
    Protocol,
):
    """All of it; one adapter implements every part."""

    def close(self) -> None:
        """Close the database; closing twice is fine."""
