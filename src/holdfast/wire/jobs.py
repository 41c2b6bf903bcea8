"""Jobs, their attempts and runs, and lists of them, as the outside sees them."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from holdfast.domain.terms.settings import MOST_PRIORITY
from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.decisions import DecisionView
from holdfast.wire.problems import ProblemDetails, ProblemEntry


class ConditionView(Response):
    """One condition of a job or a job set; reasons and messages are Kubernetes' own, word for word."""

    type: str
    """``Complete``, ``Failed``, ``FailureTarget``, ``Suspended``, ...; of a set ``Completed``, ``RestartingJobSet``."""
    status: bool
    reason: str
    message: str
    since: Timestamp


class PodsView(Response):
    """The pods of one job in its current attempt."""

    parallelism: int | None = None
    """How many may run at once."""
    completions: int | None = None
    """How many must succeed; absent: a work queue, over when one has succeeded and all have ended."""
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    """Being stopped."""
    restarts: int = 0
    """How often programs were restarted in pods that have not ended."""
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
    """What else is counted, by name: ``{"licence/matlab": "1"}``."""


class ContainerView(Response):
    """How one container, or the one local process, of a run ended."""

    name: str
    init: bool = False
    exit_code: int | None = None
    """The program's own, or 128 + signal."""
    signal: int | None = None
    """Set when a signal ended it; an exit with 137 leaves it empty."""
    reason: str = ""
    message: str = ""
    """Its termination message; the last lines of its log where it failed and left none."""


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
    """Ids of the GPUs it was given, or of the one it has a share of."""
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
    """The line of what it printed that says what went wrong."""
    progress: str = ""
    """What it last wrote to its progress file, as of a few seconds ago while it runs."""
    peak_memory: int | None = None
    """Bytes, when the engine measured it."""
    ports: dict[str, int] = Field(default_factory=dict)
    """The numbers of the ports that its job asks for, by name, while it runs."""
    decision: DecisionView | None = None
    """What was decided about its failure, where runs are pods."""


class AttemptView(Response):
    """One try at a whole job."""

    number: int
    """From 1."""
    state: str
    """Pending, Running, Succeeded, Failed, Cancelled, or Replaced: stopped by its job set to start the next one."""
    phase: str
    """The lifecycle status, as in ``history``."""
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    hint: str | None = None
    suggestion: str | None = None
    """The action its category suggests."""
    conditions: list[str] = Field(default_factory=list)
    message: str = ""
    error_line: str = ""
    """The line of its output that says what went wrong."""
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
    """Something that has to happen before a job or an array may start."""

    kind: str
    """``job``, ``array`` or ``jobset``."""
    id: str
    name: str
    condition: str
    """``ok``, ``failed``, ``ended`` or ``started``."""
    by_index: bool = False
    """Each task waits for the one of its own index."""
    on_unmet: str = "cancel"
    """What becomes of the job when that can never happen any more: ``cancel``, ``hold`` or ``run``."""
    waits: bool = False
    """Whether it is waited for now."""


class JobSummary(Response):
    """A job as lists show it."""

    id: str
    name: str
    queue: str
    state: str
    """Queued, Running, BackOff, Held, Waiting (for other work, or its job set), Succeeded, Failed or Cancelled."""
    reason: str = ""
    priority: int = 0
    gang: int = 1
    attempt: int = 0
    """Number of the current or last attempt; 0 before the first."""
    retries: int = 0
    """Counted retries granted."""
    resources: ResourcesView
    """Of each run of the next attempt."""
    submitted_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    retry_at: Timestamp | None = None
    job_set: str | None = None
    """Id of the job set it belongs to."""
    replicated_job: str | None = None
    """Of that set."""
    job_index: int | None = None
    """Among the jobs of its replicated job, from 0."""
    array: str | None = None
    """Id of the array it is a task of."""
    array_index: int | None = None
    """Its index in that."""
    depends_on: list[DependencyView] = Field(default_factory=list)
    """What had to happen before it could start, or still has to."""
    submitted_by: str = ""
    """Whose it is: who submitted it, whoever retries or changes it; empty where nobody is known."""
    group: str = ""
    """What it is part of in the words of its user."""
    parent: str | None = None
    """Id of the job that launched it, and with which it ends."""


class JobOutcome(JobSummary):
    """A job as lists show it, with its labels and how its current or last attempt went."""

    labels: dict[str, str]
    node: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    error_line: str = ""
    """The line of its output that says what went wrong."""
    progress: str = ""
    """What its runs last wrote of how far they are, after their ranks where there are several."""


class JobAccepted(JobSummary):
    """A job that was submitted."""

    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in its manifest, or accepted only by a lenient reading."""


class JobApplied(JobAccepted):
    """A Kubernetes Job that was applied, and what became of it."""

    result: str
    """``created``, ``suspended``, ``resumed`` or ``unchanged``."""


class OwnerView(Response):
    """The work that a job is part of."""

    kind: str
    """Such as `array` or `jobset`; empty where it is gone or damaged."""
    id: str
    name: str = ""


class JobView(JobOutcome):
    """A job with everything known of it."""

    annotations: dict[str, str] = Field(default_factory=dict)
    counters: dict[str, int]
    """Retries granted, by ``<policy>/<rule>``."""
    spec: dict[str, Any]
    """The specification, as a native manifest's ``spec``."""
    attempts: list[AttemptView]
    pods: PodsView | None = None
    """Of a job whose runs are pods, each replaced by itself."""
    owner: OwnerView | None = None
    """What it is part of, of whatever kind."""


class JobPage(Response):
    """Part of a list of jobs; ``fields`` says what items are: ``full`` is ``JobView``, ``outcome`` ``JobOutcome``."""

    items: Sequence[JobView | JobOutcome | JobSummary]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for what follows; absent on the last page."""


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
    """Parts of it that are worth telling by themselves."""


class HistoryPage(Response):
    """A job's history, in order."""

    items: list[HistoryEntry]


class BulkItem(Response):
    """What became of one manifest of a bulk submission."""

    index: int
    """Position in what was sent, from 0."""
    status: str
    """``created`` or ``rejected``; of a dry run ``valid``."""
    id: str | None = None
    name: str | None = None
    kind: str = "job"
    """``job`` or ``array``."""
    error: ProblemDetails | None = None
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in it, or accepted only by a lenient reading."""


class BulkResult(Response):
    """What became of a bulk submission, in the order sent."""

    items: list[BulkItem]


class Reason(Body):
    """Why a user cancels, holds or releases a job."""

    reason: str = Field(default="", max_length=1000)


class CancelRequest(Reason):
    """How a user cancels a job."""

    unless_started: bool = False
    """Leave it alone if an attempt at it has begun."""


class RetryRequest(Reason):
    """How a user retries a job."""

    set: dict[str, Any] = Field(default_factory=dict)
    """What it asks for from now on, as a merge patch of its manifest in the short form."""


class NewPriority(Body):
    """Another priority."""

    priority: int = Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    """Higher ones go first."""


class NewPriorities(NewPriority):
    """Another priority for many jobs; all that is given must hold."""

    queue: str | None = Field(default=None, max_length=1000)
    group: str | None = Field(default=None, min_length=1, max_length=1100)
    """With a slash at its end also what is below it."""
    ids: list[str] | None = Field(default=None, max_length=10_000)


class Reprioritized(Response):
    """What was asked of many jobs."""

    count: int
    """How many jobs."""


class ManyJobs(Reason):
    """Which jobs something is asked of, and why."""

    ids: list[str] = Field(max_length=10_000)


class CancelledJobs(ManyJobs, CancelRequest):
    """Which jobs are to be cancelled, and why."""


class AskedJobs(Response):
    """Of which of many jobs something was asked."""

    ids: list[str]
    """The others have ended, are about to, are not of a kind of which this is asked, or have started."""


class StatesQuery(Body):
    """Which jobs' states to return."""

    ids: list[str] = Field(max_length=10_000)


class JobStates(Response):
    """States by job id; unknown ids are left out."""

    states: dict[str, str]
    started: list[str] = Field(default_factory=list)
    """Ids of those of which an attempt has begun, and of an ended one since it was last retried by hand."""


class LogChunk(Response):
    """A part of a run's log."""

    attempt: int
    rank: int
    offset: int
    """Where ``text`` begins, in bytes."""
    next_offset: int
    """Where to continue reading."""
    text: str
    finished: bool
    """Nothing will ever follow ``next_offset``."""
    run: int = 1
    """Which of its rank's programs in the attempt printed ``text``, from 1; pods in place of each other share a log."""


class BlobBody(Body):
    """Something for the work directories of jobs that are about to be submitted."""

    data: str
    """The bytes, as base64."""
    unpack: bool = False
    """Whether it is a zip archive, and is to be refused unless it may be unpacked."""


class BlobKept(Response):
    """Where it is."""

    blob: str
    """Its SHA-256, for ``{path: PATH, blob: SHA}`` or ``{blob: SHA, unpack: true}`` in ``inputs`` of a manifest."""


class SecretBody(Body):
    """A secret for jobs that are about to be submitted."""

    value: str


class SecretKept(Response):
    """Where a secret is."""

    name: str
    """For ``{secret: NAME}`` in ``env`` of a manifest."""
