"""Wire models of jobs, their attempts and runs."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from holdfast.domain.terms.settings import MOST_PRIORITY
from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.decisions import DecisionView
from holdfast.wire.problems import ProblemDetails, ProblemEntry


class ConditionView(Response):
    """A condition of a job or job set; reasons and messages are Kubernetes' own, word for word."""

    type: str
    """``Complete``, ``Failed``, ``FailureTarget``, ``Suspended``, ...; of a set ``Completed``, ``RestartingJobSet``."""
    status: bool
    reason: str
    message: str
    since: Timestamp


class PodsView(Response):
    """The pods of a job in its current attempt."""

    parallelism: int | None = None
    """The most pods that run at once."""
    completions: int | None = None
    """How many must succeed; absent for a work queue, which is over when one has succeeded and all have ended."""
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    """Pods that are being stopped."""
    restarts: int = 0
    """Restarts of programs in pods that have not ended."""
    completed_indexes: str = ""
    """Completion indexes as Kubernetes writes them: ``0-2,5``."""
    failed_indexes: str = ""
    suspended: bool = False
    conditions: list[ConditionView] = Field(default_factory=list)


class ResourcesView(Response):
    """An amount of capacity, written as in manifests."""

    cpu: str
    """Cores: ``2``, ``0.5``."""
    memory: str
    """Bytes with a unit: ``512Mi``; ``0`` is no limit."""
    gpu: int | float
    """Whole GPUs, or a share of one: ``0.25``."""
    named: dict[str, str] = Field(default_factory=dict)
    """Named resources: ``{"licence/matlab": "1"}``."""


class ContainerView(Response):
    """The result of a container, or of the process of a local run."""

    name: str
    init: bool = False
    exit_code: int | None = None
    """The program's own, or 128 + signal."""
    signal: int | None = None
    """Set if a signal ended it; an exit with 137 leaves it empty."""
    reason: str = ""
    message: str = ""
    """Its termination message, or the last lines of its log if it failed without one."""


class RunView(Response):
    """One process or pod of an attempt."""

    uid: str
    rank: int
    state: str
    """Pending, Running, Succeeded, Failed or Cancelled."""
    phase: str
    node: str | None = None
    executor: str | None = None
    devices: list[str] = Field(default_factory=list)
    """Ids of its GPUs, or of the one it has a share of."""
    exit_code: int | None = None
    signal: int | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    ended_by: str | None = None
    message: str = ""
    conditions: list[str] = Field(default_factory=list)
    containers: list[ContainerView] = Field(default_factory=list)
    log_tail: list[str] = Field(default_factory=list)
    error_line: str = ""
    """The line of its output that tells what went wrong."""
    progress: str = ""
    """The last line of its progress file, a few seconds old at most while it runs."""
    peak_memory: int | None = None
    """Bytes, if the engine measured it."""
    ports: dict[str, int] = Field(default_factory=dict)
    """Port numbers by the names in its job, while it runs."""
    decision: DecisionView | None = None
    """The decision on its failure, if runs are pods."""


class AttemptView(Response):
    """One attempt at a whole job."""

    number: int
    """From 1."""
    state: str
    """Pending, Running, Succeeded, Failed, Cancelled, or Replaced: stopped by its job set for the next one."""
    phase: str
    """The lifecycle status, as in ``history``."""
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    hint: str | None = None
    suggestion: str | None = None
    """The action that its category suggests."""
    conditions: list[str] = Field(default_factory=list)
    message: str = ""
    error_line: str = ""
    """The line of its output that tells what went wrong."""
    exit_code: int | None = None
    signal: int | None = None
    node: str | None = None
    executor: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    retry_at: Timestamp | None = None
    resources: ResourcesView
    runs: list[RunView] = Field(default_factory=list)
    decision: DecisionView | None = None


class DependencyView(Response):
    """A dependency of a job or array."""

    kind: str
    """``job``, ``array`` or ``jobset``."""
    id: str
    name: str
    condition: str
    """``ok``, ``failed``, ``ended`` or ``started``."""
    by_index: bool = False
    """Whether each task waits for the task with its own index."""
    on_unmet: str = "cancel"
    """What happens to the job when the condition can no longer be met: ``cancel``, ``hold`` or ``run``."""
    waits: bool = False
    """Whether it still holds the job up."""


class JobSummary(Response):
    """A job as in lists."""

    id: str
    name: str
    queue: str
    state: str
    """Queued, Running, BackOff, Held, Waiting (for other work, or its job set), Succeeded, Failed or Cancelled."""
    reason: str = ""
    priority: int = 0
    gang: int = 1
    attempt: int = 0
    """The number of the current or last attempt; 0 before the first."""
    retries: int = 0
    """Retries granted that count against limits."""
    resources: ResourcesView
    """For each run of the next attempt."""
    submitted_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    retry_at: Timestamp | None = None
    job_set: str | None = None
    """The id of its job set."""
    replicated_job: str | None = None
    """The name of its replicated job."""
    job_index: int | None = None
    """Its index among the jobs of its replicated job, from 0."""
    array: str | None = None
    """The id of its array."""
    array_index: int | None = None
    """Its index in the array."""
    depends_on: list[DependencyView] = Field(default_factory=list)
    """Dependencies: what must happen, or had to, before it starts."""
    submitted_by: str = ""
    """The submitter, who stays its owner whoever retries or changes it; empty if unknown."""
    group: str = ""
    """The group its user put it into."""
    parent: str | None = None
    """The id of the job that launched it and with which it ends."""


class JobOutcome(JobSummary):
    """A job as in lists, with its labels and its current or last attempt."""

    labels: dict[str, str]
    node: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    error_line: str = ""
    """The line of its output that tells what went wrong."""
    progress: str = ""
    """The last progress reports of its runs, with their ranks if there are several."""


class JobAccepted(JobSummary):
    """A submitted job."""

    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in its manifest, or accepted only by a lenient reading."""


class JobApplied(JobAccepted):
    """A Kubernetes Job that was applied."""

    result: str
    """``created``, ``suspended``, ``resumed`` or ``unchanged``."""


class OwnerView(Response):
    """The workload that owns a job."""

    kind: str
    """Such as `array` or `jobset`; empty if it is gone or damaged."""
    id: str
    name: str = ""


class JobView(JobOutcome):
    """A job with all its details."""

    annotations: dict[str, str] = Field(default_factory=dict)
    counters: dict[str, int]
    """Retries granted, by ``<policy>/<rule>``."""
    spec: dict[str, Any]
    """The specification, as a native manifest's ``spec``."""
    attempts: list[AttemptView]
    pods: PodsView | None = None
    """The pods of a job whose runs are pods, replaced one by one."""
    owner: OwnerView | None = None
    """Its owner, of any kind."""


class JobPage(Response):
    """A page of jobs; ``fields`` selects the items: ``full`` for ``JobView``, ``outcome`` for ``JobOutcome``."""

    items: Sequence[JobView | JobOutcome | JobSummary]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for the next page; absent on the last one."""


class AttemptPage(Response):
    """A job's attempts, by number."""

    items: list[AttemptView]


class HistoryStep(Response):
    """A part of a step."""

    name: str
    outcome: str
    error_code: str = ""
    message: str = ""


class HistoryEntry(Response):
    """One step of an attempt through a phase; equal neighbours are one entry."""

    attempt: int
    seq: int
    phase: str
    from_status: str
    to_status: str
    outcome: str
    created_at: Timestamp
    updated_at: Timestamp
    error_code: str = ""
    message: str = ""
    times: int = 1
    """How many equal steps this entry stands for."""
    steps: list[HistoryStep] = Field(default_factory=list)
    """Notable parts of it."""


class HistoryPage(Response):
    """A job's history, in order."""

    items: list[HistoryEntry]


class BulkItem(Response):
    """The result of one manifest of a bulk submission."""

    index: int
    """Its position in the request, from 0."""
    status: str
    """``created`` or ``rejected``; in a dry run ``valid``."""
    id: str | None = None
    name: str | None = None
    kind: str = "job"
    """``job`` or ``array``."""
    error: ProblemDetails | None = None
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in it, or accepted only by a lenient reading."""


class BulkResult(Response):
    """The results of a bulk submission, in the order of the request."""

    items: list[BulkItem]


class Reason(Body):
    """The reason for cancelling, holding or releasing a job."""

    reason: str = Field(default="", max_length=1000)


class CancelRequest(Reason):
    """A request to cancel a job."""

    unless_started: bool = False
    """Do nothing if an attempt has begun."""


class RetryRequest(Reason):
    """A request to retry a job."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Changes from now on, as a merge patch of its manifest in the short form."""


class NewPriority(Body):
    """A new priority."""

    priority: int = Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    """Higher numbers go first."""


class NewPriorities(NewPriority):
    """A new priority for many jobs; a job must match all criteria."""

    queue: str | None = Field(default=None, max_length=1000)
    group: str | None = Field(default=None, min_length=1, max_length=1100)
    """The group; a slash at its end includes the groups below it."""
    ids: list[str] | None = Field(default=None, max_length=10_000)


class Reprioritized(Response):
    """The result of changing the priority of many jobs."""

    count: int
    """How many jobs."""


class ManyJobs(Reason):
    """A selection of jobs for a request, and the reason."""

    ids: list[str] = Field(max_length=10_000)


class CancelledJobs(ManyJobs, CancelRequest):
    """A selection of jobs to cancel, and the reason."""


class AskedJobs(Response):
    """The jobs that a request reached."""

    ids: list[str]
    """The others have ended or are about to, do not support the request, or have started."""


class StatesQuery(Body):
    """A selection of jobs whose states to return."""

    ids: list[str] = Field(max_length=10_000)


class JobStates(Response):
    """States by job id; unknown ids are left out."""

    states: dict[str, str]
    started: list[str] = Field(default_factory=list)
    """Ids of jobs with an attempt that has begun; of ended ones, since the last retry by hand."""


class LogChunk(Response):
    """A part of a run's log."""

    attempt: int
    rank: int
    offset: int
    """The offset of ``text``, in bytes."""
    next_offset: int
    """The offset to continue from."""
    text: str
    finished: bool
    """Whether nothing will ever follow ``next_offset``."""
    run: int = 1
    """Which program of the rank printed ``text``, from 1; pods that replace each other share a log."""


class BlobBody(Body):
    """A blob for the work directories of jobs about to be submitted."""

    data: str
    """The content as base64."""
    unpack: bool = False
    """Whether it is a zip archive, refused unless it can be unpacked safely."""


class BlobKept(Response):
    """A stored blob."""

    blob: str
    """Its SHA-256, for ``{path: PATH, blob: SHA}`` or ``{blob: SHA, unpack: true}`` in ``inputs`` of a manifest."""


class SecretBody(Body):
    """A secret for jobs about to be submitted."""

    value: str


class SecretKept(Response):
    """A stored secret."""

    name: str
    """Its name, for ``{secret: NAME}`` in ``env`` of a manifest."""
