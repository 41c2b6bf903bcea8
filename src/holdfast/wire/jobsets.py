"""Wire models of job sets, their jobs, logs and explanations."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.decisions import ConsideredView, LimitView
from holdfast.wire.jobs import ConditionView, DependencyView, PodsView
from holdfast.wire.problems import ProblemEntry, UnreadableView


class JobSetSummary(Response):
    """A job set as in lists."""

    id: str
    name: str
    state: str
    """Waiting (for other work), Pending, Running, Restarting, Suspended, Completed, Failed, Deleting, or Unmanaged: run
    by another controller."""
    reason: str = ""
    """The reason of its state's condition."""
    message: str = ""
    terminal: str | None = None
    """``Completed`` or ``Failed`` once it has ended."""
    suspend: bool = False
    """Whether it is suspended, or about to be."""
    deleting: bool = False
    """Whether it is deleted as soon as its programs have stopped."""
    queue: str
    priority: int = 0
    generation: int = 1
    """Grows with every change of its manifest."""
    resource_version: str = ""
    """Changes with every request about it; send it as ``If-Match`` to change only the version you have seen."""
    jobs: int
    """The number of its jobs."""
    ready: int = 0
    """Jobs whose pods are ready; this and the following count jobs of the current attempt."""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    suspended: int = 0
    restarts: int = 0
    """Restarts of the whole set, counted or not."""
    restarts_counted: int = 0
    """Restarts that count against ``max_restarts``: of the set, its replicated jobs and its jobs; or in place, if more.
    """
    max_restarts: int | None = None
    """Absent without a failure policy: its first failed job fails it."""
    restart_at: Timestamp | None = None
    """The earliest end of its parts' back-offs."""
    created_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    depends_on: list[DependencyView] = Field(default_factory=list)
    """Dependencies: what must happen before it has any job."""
    submitted_by: str = ""
    group: str = ""
    """The submitter, who stays its owner whoever changes or restarts it; empty if unknown."""


class GroupView(Response):
    """A replicated job of a set; counts are of jobs."""

    name: str
    replicas: int
    ready: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    suspended: int = 0
    restarts: int = 0
    """Restarts of this replicated job as a whole, besides those of its set."""
    job_restarts: int = 0
    """Restarts of its single jobs, in all."""
    blamed: int = 0
    """Counted restarts that its jobs caused."""
    max_restarts: int | None = None
    """The most of those, if it has a limit of its own."""
    parallelism: int = 1
    """The most pods at once of each of its jobs."""
    completions: int | None = None
    depends_on: dict[str, str] = Field(default_factory=dict)
    """The replicated jobs it waits for, with the condition: ``Ready`` or ``Complete``."""


class BackoffView(Response):
    """A part of a set that waits before it is restarted."""

    replicated_job: str | None = None
    """All its jobs; without this and ``job`` the whole set waits."""
    job: str | None = None
    until: Timestamp


class ChildView(Response):
    """A job of a set."""

    id: str
    name: str
    replicated_job: str
    index: int
    """Its index among the jobs of its replicated job, from 0."""
    state: str
    """As of any job; ``Waiting`` while its set decides when it runs."""
    reason: str = ""
    attempt: int = 0
    """The number of the current or last attempt: 1 + restarts of its set + its own; 0 before the first."""
    restarts: int = 0
    """Restarts of it alone, or of its replicated job."""
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    pods: PodsView = PodsView()


class JobSetView(JobSetSummary):
    """A job set with all its details."""

    updated_at: Timestamp
    """When it or its status last changed."""
    lenient: bool = False
    """Whether its manifest was read leniently."""
    managed_by: str | None = None
    expires_at: Timestamp | None = None
    """When it is deleted, if it has ended and has a time to live."""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    restart_strategy: str | None = None
    in_place_restarts: int | None = None
    """Restarts of its programs in place; absent with another strategy."""
    startup_order: str
    success_operator: str
    success_targets: list[str] = Field(default_factory=list)
    """Replicated jobs whose success counts; none means all."""
    coordinator: str | None = None
    """The host name of the coordinator pod."""
    conditions: list[ConditionView] = Field(default_factory=list)
    groups: list[GroupView]
    backoff: list[BackoffView] = Field(default_factory=list)
    left_failed: list[str] = Field(default_factory=list)
    """Names of failed jobs that are not restarted."""
    children: list[ChildView] = Field(default_factory=list)
    """Its first 100 jobs; all of them are under ``/jobs``."""
    manifest: dict[str, Any]
    """As last accepted; it takes effect as soon as the controller acts on it."""


class JobSetPage(Response):
    """Part of the list of job sets, by name."""

    items: list[JobSetSummary]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for the next page; absent on the last one."""
    unreadable: list[UnreadableView] = Field(default_factory=list)
    """Damaged job sets that this page leaves out; they can be deleted."""


class ChildPage(Response):
    """Part of the list of a set's jobs, by replicated job and index."""

    items: list[ChildView]
    next_cursor: str | None = None


class JobSetApplied(JobSetSummary):
    """A job set that was sent, and the result."""

    result: str
    """``created``, ``updated`` or ``unchanged``; in a dry run ``valid``."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, or accepted only by a lenient reading."""


class SetDecisionView(Response):
    """The decision on a failed job of a set, with its reasons."""

    job: str
    """The job's name."""
    attempt: int
    """The job's attempt, from 1."""
    restart: int
    """The set's restarts when the job was created."""
    job_restart: int
    """The job's own restarts when it was created."""
    action: str | None = None
    """Absent if the set has no failure policy."""
    granted: bool
    """Whether it was carried out; if the limit is used up, the set fails instead."""
    reason: str
    message: str
    rule: str | None = None
    rule_index: int | None = None
    """Absent if no rule matched, so that the default action applied."""
    delay_s: float = 0.0
    limits: list[LimitView] = Field(default_factory=list)
    considered: list[ConsideredView] = Field(default_factory=list)


class JobSetLogEntry(Response):
    """A decision on a failed job of a set, or another entry of the set's log."""

    seq: int
    at: Timestamp
    type: str
    """``Normal`` or ``Warning``, as for Kubernetes' events; or ``Decision``."""
    reason: str
    message: str
    decision: SetDecisionView | None = None


class JobSetLog(Response):
    """Part of a set's log, in order."""

    items: list[JobSetLogEntry]
    next: int
    """Pass it as ``after`` to read on, now or later."""


class JobSetDecisionTrace(Response):
    """One decision in sentences."""

    at: Timestamp
    decision: SetDecisionView
    summary: list[str]
    """Sentences for people, in order."""


class JobSetWhy(Response):
    """Why a job set is in its state."""

    id: str
    name: str
    state: str
    submitted_by: str = ""
    """The set's owner."""
    headline: str
    conditions: list[ConditionView] = Field(default_factory=list)
    summary: list[str] = Field(default_factory=list)
    """Sentences about its present state: what it waits for, the rest of its budget."""
    traces: list[JobSetDecisionTrace] = Field(default_factory=list)
    """Decisions on its failed jobs, the latest last."""
    omitted: int = 0
    """The number of earlier decisions that are left out."""


class JobSetRestart(Body):
    """What to restart of a job set, and why."""

    replicated_job: str | None = Field(default=None, max_length=255)
    """Only jobs of this replicated job; absent for every job of the set."""
    index: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only this job of the replicated job."""
    reason: str = Field(default="", max_length=1000)
