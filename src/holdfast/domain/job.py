"""The durable records: jobs, attempts and runs, and what capacity they ask for.

Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.domain.containers import UNKNOWN, EngineInfo
from holdfast.domain.lifecycle import AttemptStatus, Ending, Outcome, RunStatus
from holdfast.domain.lifecycle.judge import HandlerLimits  # noqa: TC001 - the codec of what is stored looks it up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.policy.model import Decision


if TYPE_CHECKING:
    from dataclasses import replace as evolve
else:

    def evolve(record: Any, **changes: Any) -> Any:  # noqa: ANN401 - of any of its fields
        """Return a copy of a frozen record with some fields changed, in about half the time of ``dataclasses.replace``.

        A restart of many jobs copies some twenty records for each, a tenth of its work. Type checkers see
        ``dataclasses.replace``, and so report unknown fields and wrong types.

        Args:
            record: A dataclass of at least two fields, all accepted by position by its ``__init__``.
            changes: New values by field.

        Raises:
            KeyError: It has no such field.
        """
        values_of, places = _shape(type(record))
        values = list(values_of(record))
        for name, value in changes.items():
            values[places[name]] = value
        return type(record)(*values)


@cache
def _shape(kind: type) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int]]:
    names = [*map(attrgetter("name"), fields(kind))]
    return attrgetter(*names), dict(zip(names, range(len(names)), strict=True))


@dataclass(frozen=True, slots=True, order=True)
class Resources:
    """An amount of capacity, asked for by one run or offered by one node."""

    cpu_m: int = 1000
    """Millicores."""
    memory: int = 0
    """Bytes; as a request 0 means no limit and none reserved."""
    gpu: int = 0

    def fits(self, free: Resources) -> bool:
        """Whether this request fits into what is free."""
        return self.cpu_m <= free.cpu_m and self.memory <= free.memory and self.gpu <= free.gpu

    def __add__(self, other: Resources) -> Resources:
        """Sum, per dimension."""
        return Resources(self.cpu_m + other.cpu_m, self.memory + other.memory, self.gpu + other.gpu)

    def __sub__(self, other: Resources) -> Resources:
        """Difference, per dimension; may be negative when a node shrank under its load."""
        return Resources(self.cpu_m - other.cpu_m, self.memory - other.memory, self.gpu - other.gpu)


UNLIMITED = Resources(10**12, 1 << 60, 10**9)
"""What a place offers that takes whatever comes, because an engine behind it has a queue of its own."""


class JobState(StrEnum):
    """What a user sees of a job."""

    QUEUED = "Queued"
    """Waits for a place."""
    RUNNING = "Running"
    """An attempt has a place, from being scheduled until all its runs have stopped."""
    BACKOFF = "BackOff"
    """Waits for its retry to be due; holds no resources."""
    HELD = "Held"
    """Waits until a user releases it."""
    WAITING = "Waiting"
    """Belongs to a job set that decides when it runs: not started, suspended, or over before its set."""
    SUCCEEDED = "Succeeded"
    """Every run of its last attempt ended with code 0; final."""
    FAILED = "Failed"
    """Its last attempt failed and is not retried; final."""
    CANCELLED = "Cancelled"
    """A user ended it; final."""


JOB_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
JOB_WAITING = frozenset({JobState.QUEUED, JobState.BACKOFF, JobState.HELD})


@dataclass(frozen=True, slots=True)
class ChildOf:
    """Where a job stands in its job set."""

    set_id: str
    group: str
    """Its replicated job."""
    index: int
    """Among the jobs of its replicated job, from 0."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job without its history: all the controller keeps in memory while it waits."""

    id: str
    name: str
    queue: str
    priority: int
    submitted_at: float
    spec: str
    """The specification as canonical JSON (``compiled.codec``); equal specifications share one string."""
    request: Resources = Resources()
    """What each run of the next attempt asks for; grows by mutation and survives preemption."""
    gang: int = 1
    seq: int = 0
    """Order of submission; kept over retries, so that a retry does not go to the tail."""
    state: JobState = JobState.QUEUED
    reason: str = ""
    """Why it is in this state, for people: a pending reason, a decision's reason, a hold's."""
    attempt: int = 0
    """Number of the current or last attempt; 0 before the first is placed."""
    queued_at: float = 0.0
    """When it last became ready to be placed; scheduling timeouts run from here."""
    retry_at: float | None = None
    """When a retry is due."""
    updated_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    """Retries granted, by ``<policy>/<rule>``."""
    retries: int = 0
    """Counted retries granted in all; what ``globalMaxRetries`` looks at."""
    avoid_node: str | None = None
    cancel_requested: bool = False
    child: ChildOf | None = None
    """The job set it belongs to, if any; such a job starts in state ``Waiting``."""

    @property
    def terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.state in JOB_TERMINAL


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a whole job; identity is (job_id, number)."""

    job_id: str
    number: int
    """From 1."""
    status: AttemptStatus = AttemptStatus.PENDING
    status_since: float = 0.0
    """When it entered ``status``."""
    tries: int = 0
    """Failures of the current phase's handler so far; reset by a change of phase, never by a skip."""
    dispatch: int = 0
    """How often its runs were placed; part of every run's uid."""
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
    """When the retry it was granted is due."""
    message: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """Its identity."""
        return (self.job_id, self.number)

    def entered(self, status: AttemptStatus, at: float) -> Attempt:
        """Return it in another status, with clock and tries reset."""
        # Written out: ``dataclasses.replace`` takes three times as long, and every job moves six times.
        return Attempt(
            self.job_id,
            self.number,
            status,
            at,
            0,
            self.dispatch,
            self.created_at,
            self.started_at,
            self.ended_at,
            self.request,
            self.ending,
            self.failure,
            self.decision,
            self.retry_at,
            self.message,
        )

    def after(self, outcome: Outcome, to: AttemptStatus | None, at: float) -> Attempt:
        """Return it after an outcome; a change of status resets its clock and its tries."""
        if to is not None and to is not self.status:
            return self.entered(to, at)
        return evolve(self, tries=self.tries + 1) if outcome in _COUNTED else self


_COUNTED = frozenset({Outcome.NEED_RETRY, Outcome.GIVE_UP, Outcome.EXPIRED})


@dataclass(frozen=True, slots=True)
class Run:
    """One process or pod of an attempt; the thing that has an exit code."""

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
    """Its own failure, where it was judged for itself and not with its attempt."""
    decision: Decision | None = None
    """What was decided about that."""
    generation: int = 1
    """Of its workload, when it was made."""

    @property
    def dispatch(self) -> int:
        """Which placement of its attempt it belongs to, the last part of its uid."""
        return int(self.uid.rpartition("-")[2])

    def entered(self, status: RunStatus, at: float) -> Run:
        """Return it in another status."""
        return Run(
            self.uid,
            self.job_id,
            self.attempt,
            self.rank,
            status,
            at,
            self.executor,
            self.node,
            self.request,
            self.started_at,
            self.ended_at,
            self.outcome,
            self.progress,
            self.failure,
            self.decision,
            self.generation,
        )


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Most of each kind of capacity that may be in use at once; ``None`` is no limit."""

    cpu_m: int | None = None
    memory: int | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """Where jobs wait."""

    name: str
    weight: float = 1.0
    """Share of capacity against other queues when they compete."""
    max_running: Ceiling = Ceiling()
    """Never more than this in use at once."""
    max_running_jobs: int | None = None
    retry_policies: tuple[str, ...] = ()
    """Named policies that apply to every job in it, first."""
    paused: bool = False
    """Accepts jobs and starts none."""
    handler_limits: HandlerLimits = field(default_factory=dict)
    """For its jobs' attempts, where they differ from the operator's."""


@dataclass(frozen=True, slots=True)
class Node:
    """A place with capacity inside an executor, as last reported."""

    name: str
    executor: str
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_at: float = 0.0
    engine: EngineInfo = UNKNOWN
    """What runs things there."""
