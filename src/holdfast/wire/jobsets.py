"""Job sets, their jobs, their log and their explanation, as the outside sees them."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.decisions import ConsideredView, LimitView
from holdfast.wire.jobs import ConditionView, DependencyView, PodsView
from holdfast.wire.problems import ProblemEntry, UnreadableView


class JobSetSummary(Response):
    """A job set as lists show it."""

    id: str
    name: str
    state: str
    """Waiting (for other work), Pending, Running, Restarting, Suspended, Completed, Failed, Deleting, or Unmanaged: run
    by another controller."""
    reason: str = ""
    """Why it is in this state: the reason of its condition."""
    message: str = ""
    terminal: str | None = None
    """``Completed`` or ``Failed`` once it is over."""
    suspend: bool = False
    """Whether it is suspended, or will be."""
    deleting: bool = False
    """It is removed as soon as its programs have stopped."""
    queue: str
    priority: int = 0
    generation: int = 1
    """Grows with every change of its manifest."""
    resource_version: str = ""
    """Changes with every request about it; send it as ``If-Match`` to change only what you have seen."""
    jobs: int
    """How many it has."""
    ready: int = 0
    """Jobs whose pods are ready; this and the following count jobs of the current attempt."""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    suspended: int = 0
    restarts: int = 0
    """Of the whole set, counted or not."""
    restarts_counted: int = 0
    """All that count against ``max_restarts``: of the set, its replicated jobs and its jobs; or in place, if more."""
    max_restarts: int | None = None
    """Absent: it has no failure policy, and its first failed job fails it."""
    restart_at: Timestamp | None = None
    """When the first of its parts that wait before they are restarted is due."""
    created_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    depends_on: list[DependencyView] = Field(default_factory=list)
    """What has to happen before it has any job."""
    submitted_by: str = ""
    group: str = ""
    """Whose it is: who submitted it, whoever changes or restarts it; empty where nobody is known."""


class GroupView(Response):
    """One replicated job of a set; counts are of jobs."""

    name: str
    replicas: int
    ready: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    suspended: int = 0
    restarts: int = 0
    """Of this replicated job as a whole, beside those of its set."""
    job_restarts: int = 0
    """Of its single jobs, in all."""
    blamed: int = 0
    """Counted restarts its jobs caused."""
    max_restarts: int | None = None
    """How many of those are allowed, if it has its own limit."""
    parallelism: int = 1
    """Pods at once, of each of its jobs."""
    completions: int | None = None
    depends_on: dict[str, str] = Field(default_factory=dict)
    """Replicated jobs it waits for, and what for: ``Ready`` or ``Complete``."""


class BackoffView(Response):
    """A part of a set that waits before it is restarted."""

    replicated_job: str | None = None
    """All jobs of it; with neither this nor ``job`` the whole set waits."""
    job: str | None = None
    until: Timestamp


class ChildView(Response):
    """One job of a set."""

    id: str
    name: str
    replicated_job: str
    index: int
    """Among the jobs of its replicated job, from 0."""
    state: str
    """As of any job; ``Waiting`` while its set decides when it runs."""
    reason: str = ""
    attempt: int = 0
    """Number of the current or last attempt: 1 + restarts of its set + its own; 0 before the first."""
    restarts: int = 0
    """Its own: of it alone, or of its replicated job."""
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    pods: PodsView = PodsView()


class JobSetView(JobSetSummary):
    """A job set with everything known of it."""

    updated_at: Timestamp
    """When it, or what is known of it, last changed."""
    lenient: bool = False
    """Whether its manifest was read leniently."""
    managed_by: str | None = None
    expires_at: Timestamp | None = None
    """When it is deleted by itself, once it is over and has a time to live."""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    restart_strategy: str | None = None
    in_place_restarts: int | None = None
    """How often its programs were restarted in place; absent with another strategy."""
    startup_order: str
    success_operator: str
    success_targets: list[str] = Field(default_factory=list)
    """Replicated jobs whose success counts; none is all."""
    coordinator: str | None = None
    """Host name of the pod that all others get to know."""
    conditions: list[ConditionView] = Field(default_factory=list)
    groups: list[GroupView]
    backoff: list[BackoffView] = Field(default_factory=list)
    left_failed: list[str] = Field(default_factory=list)
    """Names of jobs that failed and are not restarted."""
    children: list[ChildView] = Field(default_factory=list)
    """The first 100 of its jobs; all of them are under ``/jobs``."""
    manifest: dict[str, Any]
    """As it was last accepted; it takes effect as soon as the controller acts on it."""


class JobSetPage(Response):
    """Part of the list of job sets, by name."""

    items: list[JobSetSummary]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for what follows; absent on the last page."""
    unreadable: list[UnreadableView] = Field(default_factory=list)
    """What is left out of this page, because it is damaged; it can be deleted."""


class ChildPage(Response):
    """Part of the list of a set's jobs, by replicated job and index."""

    items: list[ChildView]
    next_cursor: str | None = None


class JobSetApplied(JobSetSummary):
    """A job set that was sent, and what became of it."""

    result: str
    """``created``, ``updated``, ``unchanged``; of a dry run ``valid``."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, or accepted only by a lenient reading."""


class SetDecisionView(Response):
    """What was decided about one failed job of a set, and why."""

    job: str
    """Its name."""
    attempt: int
    """Of that job, from 1."""
    restart: int
    """Restarts of the set when that job was created."""
    job_restart: int
    """Its own restarts when it was created."""
    action: str | None = None
    """Absent: the set has no failure policy."""
    granted: bool
    """Whether it was done; a spent limit fails the set instead."""
    reason: str
    message: str
    rule: str | None = None
    rule_index: int | None = None
    """Absent: no rule matched, so the default action applied."""
    delay_s: float = 0.0
    limits: list[LimitView] = Field(default_factory=list)
    considered: list[ConsideredView] = Field(default_factory=list)


class JobSetLogEntry(Response):
    """One decision about a failed job of a set, or one thing to know of the set."""

    seq: int
    at: Timestamp
    type: str
    """``Normal`` or ``Warning``, as of Kubernetes' events; or ``Decision``."""
    reason: str
    message: str
    decision: SetDecisionView | None = None


class JobSetLog(Response):
    """Part of a set's log, in order."""

    items: list[JobSetLogEntry]
    next: int
    """Pass as ``after`` to read on, now or later."""


class JobSetDecisionTrace(Response):
    """One decision in sentences."""

    at: Timestamp
    decision: SetDecisionView
    summary: list[str]
    """Sentences for people, in order."""


class JobSetWhy(Response):
    """Why a job set is where it is."""

    id: str
    name: str
    state: str
    submitted_by: str = ""
    """Whose it is."""
    headline: str
    conditions: list[ConditionView] = Field(default_factory=list)
    summary: list[str] = Field(default_factory=list)
    """Sentences for people about how it stands now: what it waits for, what is left of its budget."""
    traces: list[JobSetDecisionTrace] = Field(default_factory=list)
    """What was decided about its failed jobs, latest last."""
    omitted: int = 0
    """Earlier decisions that are left out."""


class JobSetRestart(Body):
    """What of a job set to restart, and why."""

    replicated_job: str | None = Field(default=None, max_length=255)
    """Only its jobs; absent: every job of the set."""
    index: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only this job of the replicated job."""
    reason: str = Field(default="", max_length=1000)
