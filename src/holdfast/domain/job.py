"""The durable records of jobs, attempts and runs, of queues and of nodes.

Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.domain.access.grants import Permission  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.containers import UNKNOWN, EngineInfo
from holdfast.domain.devices import Device  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.failure import EndedBy, FailureCondition, RunOutcome
from holdfast.domain.lifecycle import (
    RUN_ENDED,
    RUN_FAILED,
    RUN_NEVER_STARTED,
    AttemptStatus,
    Ending,
    Interruption,
    RunStatus,
)
from holdfast.domain.lifecycle.engine import HandlerLimits  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.notifier import Notify  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.shortage import Short  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.terms.kinds import JOB, KindInfo
from holdfast.domain.terms.projects import DEFAULT_DOMAIN
from holdfast.domain.terms.resources import UNLIMITED as UNLIMITED  # noqa: PLC0414 - part of this vocabulary
from holdfast.domain.terms.resources import Amounts as Amounts  # noqa: PLC0414 - part of this vocabulary
from holdfast.domain.terms.resources import Resources as Resources  # noqa: PLC0414 - part of this vocabulary
from holdfast.domain.terms.states import JOB_TERMINAL as JOB_TERMINAL  # noqa: PLC0414 - part of this vocabulary
from holdfast.domain.terms.states import JobState as JobState  # noqa: PLC0414 - part of this vocabulary
from holdfast.domain.terms.workload_kinds import GANG

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.model import Decision


_STOPPED_BY_US = frozenset({EndedBy.USER, EndedBy.SUSPENSION, EndedBy.CASCADE})
JOB_WAITING = frozenset({JobState.QUEUED, JobState.BACKOFF, JobState.HELD})


class ChildOf(Struct, frozen=True):
    """The position of a job in the workload that owns it."""

    set_id: str
    """The id of its job set or its array."""
    group: str
    """Its replicated job; empty for an array's task."""
    index: int
    """Its index among the jobs of its replicated job, from 0, or among the tasks of its array."""


class Job(Struct, frozen=True):
    """A job without its history: what the controller keeps in memory while it waits."""

    id: str
    name: str
    queue: str
    priority: int
    submitted_at: float
    spec: str
    """The specification as canonical JSON (``compiled.codec``); equal specifications share one string."""
    request: Resources = Resources()
    """The request of each run of the next attempt; grows by mutation and survives preemption."""
    gang: int = 1
    seq: int = 0
    """Order of submission; kept over retries, so that a retry does not go to the end of the queue."""
    state: JobState = JobState.QUEUED
    reason: str = ""
    """Why it is in this state, for people: the reason why it is pending or held, or that of a decision."""
    attempt: int = 0
    """Number of the current or last attempt; 0 before the first is placed."""
    queued_at: float = 0.0
    """When it last became ready to be placed; scheduling timeouts count from here."""
    retry_at: float | None = None
    """When a retry is due."""
    updated_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    """Retries granted, by ``<policy>/<rule>``."""
    retries: int = 0
    """All counted retries granted, which ``globalMaxRetries`` limits."""
    avoid_node: str | None = None
    avoid_devices: tuple[str, ...] = ()
    """``<id>@<node>`` of each GPU its next attempt avoids."""
    avoid_nodes: tuple[str, ...] = ()
    """Nodes that its next attempt must not use."""
    tried: tuple[str, ...] = ()
    """Every node on which it was tried, in order, since it was submitted, or retried by hand after its end."""
    cancel_requested: bool = False
    child: ChildOf | None = None
    """The job set or array it belongs to, if any; a job of a set starts in state ``Waiting``."""
    ready_at: float | None = None
    """When its dependencies were met, from which its total deadline counts; ``None`` until then, and without
    dependencies."""
    met: tuple[int, ...] = ()
    """Until then, the indexes of the dependencies that it no longer waits for."""
    submitted_by: str = ""
    """Its owner: who submitted it or its workload, never who retries it; empty if unknown."""
    submitter_uid: int | None = None
    """The uid of the owner's Unix account, if there is one."""
    group: str = ""
    """The group by which it is found together with others; fixed."""
    kind: str = GANG
    """The kind of workload, which determines its reconciler; fixed."""
    parent: str = ""
    """The id of the job that launched it, and with which it ends; fixed."""

    info: ClassVar[KindInfo] = JOB
    """Its kind's names and states, as people see them."""

    @property
    def of_set(self) -> ChildOf | None:
        """Its position in its job set, which decides when it runs; ``None`` for any other job."""
        return self.child if self.child is not None and self.child.group else None

    @property
    def terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.state in JOB_TERMINAL


class Attempt(Struct, frozen=True):
    """One try at a whole job; identity is (job_id, number)."""

    job_id: str
    number: int
    """From 1."""
    status: AttemptStatus = AttemptStatus.PENDING
    status_since: float = 0.0
    """When it entered ``status``."""
    tries: int = 0
    """Failures of the current phase's handler; reset by a change of phase, but not by a skip."""
    dispatch: int = 0
    """How often its runs were placed; part of the uid of every run."""
    created_at: float = 0.0
    started_at: float | None = None
    """When the last of its programs started."""
    ended_at: float | None = None
    request: Resources = Resources()
    ending: Ending | None = None
    failure: Failure | None = None
    """The failure that was judged."""
    decision: Decision | None = None
    retry_at: float | None = None
    """When the granted retry is due."""
    message: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """Its identity."""
        return (self.job_id, self.number)

    def entered(self, status: AttemptStatus, at: float) -> Attempt:
        """Return it in another status, with its clock and tries reset."""
        return evolve(self, status=status, status_since=at, tries=0)


class Run(Struct, frozen=True):
    """One process or pod of an attempt; it has an exit code."""

    uid: str
    """``<job id>-<attempt>-<rank>-<dispatch>``: fresh for every dispatch."""
    job_id: str
    attempt: int
    rank: int
    status: RunStatus = RunStatus.PENDING
    status_since: float = 0.0
    executor: str = ""
    node: str = ""
    request: Resources = Resources()
    started_at: float | None = None
    ended_at: float | None = None
    outcome: RunOutcome | None = None
    progress: str = ""
    """Its last progress report while it runs; updated every few seconds at most."""
    failure: Failure | None = None
    """Its failure, if it was judged by itself rather than with its attempt."""
    decision: Decision | None = None
    """The decision about that failure."""
    generation: int = 1
    """The generation of its workload when it was created."""
    devices: tuple[str, ...] = ()
    """Ids of its GPUs, or of the one it has a share of; empty where GPUs are only counted."""
    interrupted: Interruption | None = None
    """Why it was told to stop, if not because of a failure of its own."""
    token_digest: str = ""
    """The digest of its program's token, if it has one."""
    ports: Mapping[str, int] = {}
    """Its port numbers by name, from when the executor reported them until it has ended."""

    @property
    def dispatch(self) -> int:
        """The number of the placement it belongs to, the last part of its uid."""
        return int(self.uid.rpartition("-")[2])

    @property
    def may_have_run(self) -> bool:
        """Whether its program started, or may have started."""
        return self.started_at is not None if self.outcome is None else self.outcome.started

    def entered(self, status: RunStatus, at: float) -> Run:
        """Return it in another status."""
        return evolve(self, status=status, status_since=at)

    def ended(self, outcome: RunOutcome, at: float) -> Run:
        """Return it as ended; ``at`` is when that was noticed."""
        row = RUN_FAILED
        if outcome.succeeded:
            row = RUN_ENDED
        elif outcome.ended_by in _STOPPED_BY_US:
            row = RUN_ENDED if outcome.started else RUN_NEVER_STARTED
        # If an executor's clock is ahead, ends lie in the future, and a back-off from there would be longer.
        ended_at, node = min(outcome.ended_at or at, at), outcome.node or self.node
        began = outcome.started_at
        if began is not None and outcome.ended_at > at:
            # Shifted by the same amount, to keep how long it ran.
            began -= outcome.ended_at - at
        return evolve(
            self,
            node=node,
            status=row.moves[self.status],
            status_since=at,
            started_at=began or self.started_at,
            ended_at=ended_at,
            ports={},
            outcome=evolve(
                outcome, node=node, executor=outcome.executor or self.executor, started_at=began, ended_at=ended_at
            ),
        )

    def lost(self, at: float, *, restored: bool = False) -> RunOutcome:
        """Return its outcome when its executor is lost; a program that was to start there may have run.

        ``restored`` is for a run that a restored database has and its executor does not: its end is unknown, too.
        """
        what = f"executor {self.executor} was lost"
        if restored:
            what = f"the database was restored, and executor {self.executor} does not have this run"
            what += ": it may run elsewhere"
        elif self.started_at is None:
            what += "; the program may have run"
        return RunOutcome(
            conditions=frozenset({FailureCondition.EXECUTOR_LOST}),
            ended_by=EndedBy.LOST,
            started_at=self.started_at,
            ended_at=at,
            node=self.node,
            executor=self.executor,
            message=what,
        )


def job_of(uid: str) -> str:
    """Return the job's id from the uid of a run, or of a place kept for one."""
    return uid.rsplit("-", 3)[0]


class Ceiling(Struct, frozen=True):
    """The maximum of each kind of capacity that may be in use at once; ``None`` is no limit."""

    cpu_m: int | None = None
    memory: int | None = None
    gpu: int | None = None
    named: Amounts = ()
    """Limits of named resources, in thousandths; those not listed have no limit."""


class UserLimits(Struct, frozen=True):
    """Limits for each user of a queue."""

    max_running: Ceiling = Ceiling()
    """The maximum in use at once."""
    max_running_jobs: int | None = None
    max_queued: int | None = None
    """Jobs that wait at once; more are refused when they are submitted."""
    submissions_per_minute: int | None = None

    @property
    def of_running(self) -> bool:
        """Whether it limits what runs."""
        return self.max_running_jobs is not None or self.max_running != Ceiling()


class Queue(Struct, frozen=True):
    """A queue, in which jobs wait."""

    name: str
    weight: float = 1.0
    """Its share of capacity relative to other queues."""
    max_running: Ceiling = Ceiling()
    """The maximum in use at once."""
    max_running_jobs: int | None = None
    retry_policies: tuple[str, ...] = ()
    """Named policies that apply to every job in it, before the job's own."""
    paused: bool = False
    """Accepts jobs and starts none."""
    handler_limits: HandlerLimits = field(default_factory=dict)
    """Limits for its jobs' attempts, where they differ from the operator's."""
    notify: tuple[Notify, ...] = ()
    """The notifiers of its jobs and arrays."""
    permissions: tuple[Permission, ...] = ()
    """Who may do what in it; without any it is open to users."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Metadata of other programs; Holdfast does not read it."""
    per_user: UserLimits = UserLimits()
    """The limits of each single user."""
    max_queued: int | None = None
    """Jobs that wait at once; more are refused when they are submitted."""
    submissions_per_minute: int | None = None
    domain: str = DEFAULT_DOMAIN
    session_retry: Mapping[str, Any] = field(default_factory=dict)
    """The fields that it sets of its sessions' retry policy, as they were written; they replace its domain's."""

    @property
    def limits_intake(self) -> bool:
        """Whether it may refuse submissions."""
        limits = (self.max_queued, self.submissions_per_minute)
        return any(
            limit is not None for limit in (*limits, self.per_user.max_queued, self.per_user.submissions_per_minute)
        )


class Node(Struct, frozen=True):
    """A place with capacity inside an executor, as last reported."""

    name: str
    executor: str
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_at: float = 0.0
    engine: EngineInfo = UNKNOWN
    """The engine that runs programs there."""
    devices: tuple[Device, ...] = ()
    """Its GPUs; empty where they are only counted."""
    short: Short | None = None
    """Its shortage, if any; it gets no new work then."""
