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
from holdfast.ports.sessions import SessionStore
from holdfast.ports.workloads import Left, Rerun, W, WorkloadQueries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped
    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.events.registry import EventRecord, StoredEvent
    from holdfast.domain.job import Attempt, Job, JobState, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.sessions.model import Kernel, Session
    from holdfast.domain.workloads.base import Quarantined, Workload
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.errors import HoldfastError
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.names import ExternalName
    from holdfast.ports.requests import Request


RECENT_EVENTS = 50_000
"""How many of the last events a starting controller reads."""


class News(NamedTuple):
    """Whether there is something new for the controller."""

    catalogue_version: int
    is_asked: bool
    """Whether there are unhandled requests."""


class Submission(Struct, frozen=True):
    """Jobs to append, all or none."""

    jobs: Sequence[Job]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by job id, for filtering."""
    idempotency_key: str | None = None
    fingerprint: str = ""
    """A digest of the request that came with the key."""
    newest: str | None = None
    """The expected id of the newest job with the first one's name, empty for none; ``None`` is not checked."""
    owner: Workload | None = None
    """The workload that owns all these jobs; the request is about it, and it may have no jobs."""
    also: Sequence[Workload] = ()
    """Independent workloads to append and take in with the jobs."""
    rerun: Rerun | None = None
    """The tasks that one of them reruns."""
    awaited: Collection[str] = ()
    """Ids of dependencies: jobs and workloads that must still exist."""
    policies: Collection[str] = ()
    """Names of retry policies that must still exist."""
    limited: Collection[str] = ()
    """Names of queues that limit submissions."""
    caller: Caller | None = None
    """The submitter, for the audit log."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Idempotency keys of single jobs, by id: if a key is known, its first job is returned instead of a new one."""
    names: Mapping[str, ExternalName] = field(default_factory=dict)
    """External names of jobs, by id: if a name is taken, its present holder is returned instead of a new job."""
    sessions: Sequence[Session] = ()
    """The first sessions of jobs that are sessions of Backend.AI's users."""
    callers: Mapping[str, Caller] = field(default_factory=dict)
    """Submitters of single jobs, by id, if they came in different requests; for the audit log."""


class Changes(Struct, gc=True):
    """Everything that one tick changed, for one transaction. The last value of each record wins."""

    jobs: dict[str, Job] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    history: dict[tuple[str, str, int], HistoryRow] = field(default_factory=dict)
    """By (kind, id, seq); a merged row replaces its earlier version."""
    sessions: dict[str, Session] = field(default_factory=dict)
    """By id."""
    kernels: dict[str, Kernel] = field(default_factory=dict)
    """By id."""
    unread: dict[str, Job] = field(default_factory=dict)
    """Jobs, by id, that were cancelled although they cannot be read: their sessions end, whatever is in their rows."""
    retries: dict[str, str] = field(default_factory=dict)
    """The session that each new one retries, by the new one's id; it has the present name and tag of that one."""
    nodes: dict[tuple[str, str], Node] = field(default_factory=dict)
    """By (executor, name)."""
    handled: list[int] = field(default_factory=list)
    """Ids of handled requests."""
    events: dict[int, EventRecord] = field(default_factory=dict)
    """In order, by numbers that only tell them apart until they are written."""
    workloads: dict[str, Workload] = field(default_factory=dict)
    """By id, of any kind; each exists already or belongs to a job."""
    forgotten: dict[str, None] = field(default_factory=dict)
    """Ids of workloads to delete with their logs; their jobs stay."""
    set_log: list[SetLogEntry] = field(default_factory=list)
    """Entries to append to the logs of job sets, in order."""
    quarantined: dict[str, Quarantined | None] = field(default_factory=dict)
    """By workload id; ``None`` releases the workload."""
    new_jobs: dict[str, Job] = field(default_factory=dict)
    """Jobs to append; the store assigns ``seq``."""
    notifications: list[Notification] = field(default_factory=list)
    """New notifications; one that exists already stays as it is."""
    epoch: int | None = None
    """The writer's epoch from ``lead``; ``None`` is not checked, for the only user of a store."""
    specs: dict[str, str] = field(default_factory=dict)
    """Ids of jobs whose specification changed."""
    priorities: dict[str, int] = field(default_factory=dict)
    """New priorities by job id."""
    audited: list[AuditedChange] = field(default_factory=list)
    """What is done by itself and yet in the audit log."""

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return any(_CONTENT(self))

    def of(self, kind: type[W]) -> dict[str, W]:
        """Return the changed workloads of one kind, by id."""
        return {key: workload for key, workload in self.workloads.items() if isinstance(workload, kind)}


_CONTENT = attrgetter(*(name for name in Changes.__struct_fields__ if name != "epoch"))
"""The fields that a commit writes; the epoch only identifies the writer."""


class LiveSession(Struct, frozen=True):
    """The current session of an unfinished job."""

    session: Session
    kernels: Sequence[Kernel]
    last: Mapping[str, HistoryRow]
    """The last rows of it and its kernels, by their ids in the history."""


class Snapshot(Struct, frozen=True):
    """Everything a controller needs to continue after a restart."""

    jobs: Sequence[Job]
    """All unfinished jobs, in order of submission."""
    attempts: Sequence[Attempt]
    """All unfinished attempts."""
    runs: Sequence[Run]
    """All runs of those attempts' current dispatch, their other unfinished runs, and the last run of each pod with
    stored state.
    """
    history: Mapping[str, HistoryRow]
    """The last row of each of those attempts, and of attempts that wait for a place, by the row's id."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """By id, in order of names: workloads of the jobs above, and all without a job, including ended ones."""
    unreadable: Mapping[str, tuple[str, HoldfastError]] = field(default_factory=dict)
    """By id: the kind of each unreadable workload, and the error."""
    quarantined: Mapping[str, Quarantined] = field(default_factory=dict)
    """By workload id."""
    losses: Sequence[StoredEvent] = ()
    """The ``node.lost`` events among the last ``RECENT_EVENTS``, in order."""
    sessions: Sequence[LiveSession] = ()
    """The current sessions of the jobs above."""

    def of(self, kind: type[W]) -> dict[str, W]:
        """Return the workloads of one kind, by id."""
        return {key: workload for key, workload in self.workloads.items() if isinstance(workload, kind)}


class RunsAs(Struct, frozen=True):
    """The account under which a leader runs programs."""

    account: Principal | None = None
    """The account for all programs; ``None``: each runs as its submitter."""


class ControllerStore(Protocol):
    """The store for the controller, the only writer of lifecycle state."""

    def load(self) -> Snapshot:
        """Read all unfinished work."""

    def mark(self) -> object:
        """Return, cheaply, a mark that is unchanged only if there was no request and no change of the catalogue since.

        It may change after other writes, too; ``None`` means that this is unknown.
        """

    def news(self) -> News:
        """Return whether there is something new, if the mark does not rule it out."""

    def requests(self, *, limit: int) -> Sequence[Request]:
        """Return the oldest unhandled requests without removing them."""

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        """Return jobs by id, in order of submission; unknown ids are left out."""

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through, in order."""

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return workloads by id; unknown ids are left out."""

    def left_to_end(self, key: str) -> Left:
        """Return what can be read of a job, or of a workload with jobs, to end it."""

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""

    def children_of(self, owner: str) -> Sequence[Job]:
        """Return all jobs of a workload, in order of submission."""

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state: all, or those of one workload."""

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
        """Take or renew the lease of the only writer for ``ttl_s`` seconds; 0 s steps down.

        The lease says who should write; the epoch says who can, whatever any clock says. When this returns, no commit
        of an earlier call by the same owner is under way any more.

        Args:
            owner: A name that no other process has or had.
            ttl_s: The duration of the lease, counted by the store.
            now: The caller's time; a store with a clock of its own ignores it.
            heir_of: A prefix of owners that are known to be dead; their leases do not count.
            place: The data directory of the owner's jobs, if it has one.
            runs_as: The account for programs; the store remembers whether each ran as its submitter.

        Returns:
            The epoch for commits: unchanged while the owner is, otherwise larger than every earlier one.

        Raises:
            NotLeader: Another owner's lease still runs; the message names it.
            Refused: Work here belongs to other accounts than the one that would run it.
            Unavailable: The disk is full, or the database is locked or unreachable; nothing was changed.
        """

    def commit(self, changes: Changes) -> None:
        """Make all changes durable in one transaction, or none.

        Raises:
            Unavailable: The disk is full or the database is locked; nothing was changed.
            Uncertain: The answer of a database server was lost: everything was changed once, or nothing.
            Conflict: Another owner leads since the changes' epoch; nothing was changed.
            Internal: A change is about a job or workload that does not exist; nothing was changed.
        """


class SubmissionStore(Protocol):
    """The store for the APIs' writes."""

    def require_room(self, submission: Submission, now: float) -> None:
        """Make sure that queues have room for a submission, without counting it.

        Raises:
            QueueFull, RateLimited: A queue has no room.
        """

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Append jobs and the request to take them in, in one transaction; ``seq`` is assigned here.

        Returns:
            The ids of the jobs and of the other workloads. If the idempotency key is known, those of its first call;
            for a known key or name of a single job, the job that has it.

        Raises:
            Conflict: The idempotency key is known with another fingerprint, a queue or a policy is gone, or another set
                has a job with the name of one of this set's.
            AlreadyExists: A job of that id exists, or a newer one of that name if that is checked, or a workload of
            that
                kind and name.
            QueueFull, RateLimited: A queue has no room; nothing is stored.
            NotFound, VersionConflict: An array to rerun is gone, or another one reruns one of the tasks.
        """

    def append(self, request: Request, *, caller: Caller | None = None, version: int | None = None) -> None:
        """Append a request; with a caller, also to the audit log.

        The version of a workload with a name of its own grows by one.

        Args:
            request: The request.
            caller: Who makes it.
            version: The expected version of the workload; others may have made a request meanwhile.

        Raises:
            NotFound: The workload is gone, and a version is given; or a job to retry is gone.
            VersionConflict: It has another version.
            Conflict: A job to retry is about to be retried already, or its queue is gone.
        """


class JobFilter(Struct, frozen=True):
    """A selection of jobs; every field that is set must hold."""

    states: frozenset[JobState] | None = None
    queue: str | None = None
    name: str | None = None
    job_set: str | None = None
    """The id of their job set or array."""
    labels: tuple[tuple[str, str], ...] = ()
    quarantined: bool = False
    """Whether they are quarantined."""
    reasoned: bool = False
    """Whether their state has a reason."""
    tasks: bool = True
    """Whether to include tasks of arrays."""
    ids: frozenset[str] | None = None
    """Only these ids."""
    submitted_by: str | None = None
    """Only jobs of this submitter."""
    group: Grouped | None = None
    named: Grouped | None = None
    """Only jobs with this external name, or below it."""
    seen: Seen | None = None
    """Only jobs that the caller may know of; ``None``: all."""


class Listed(Struct, frozen=True):
    """Jobs and their quarantines at one instant."""

    jobs: Sequence[Job]
    quarantined: Mapping[str, Quarantined]
    """By id; may include others."""


class QueryStore(Protocol):
    """Readers' queries; every answer is a consistent snapshot."""

    def job(self, reference: str, *, seen: Seen | None = None) -> Job:
        """Find a job by id, by name (the newest of that name), or by a unique id prefix of 6 or more characters.

        ``NAME@PREFIX`` is the only job of that name whose id has the prefix, of any length. With ``seen``, only jobs
        that the caller may know of are found.

        Raises:
            NotFound: None matches, or a prefix is ambiguous.
        """

    def jobs(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Sequence[Job]:
        """List jobs in order of submission, those with ``seq > after``."""

    def listed(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Listed:
        """List jobs like ``jobs``, with their quarantines, in one query: this is the most frequent request."""

    def job_states(self, job_ids: Sequence[str]) -> Mapping[str, StateOfJob]:
        """Return the states of jobs, cheaply; unknown ids are left out."""

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state: all, or those of one workload."""

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""

    def run(self, uid: str) -> Run | None:
        """Return a run, if it exists."""

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return the quarantined workloads, by id."""

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""

    def running(self) -> Iterable[Run]:
        """List unfinished runs."""


class Store(
    ControllerStore,
    SubmissionStore,
    QueryStore,
    NameStore,
    SessionStore,
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
    """The whole store; one adapter implements all parts."""

    def close(self) -> None:
        """Close the database; closing twice is fine."""
