"""Jobs, their attempts and runs, and lists of them, as the outside sees them."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.decisions import DecisionView
from holdfast.wire.pods import PodsView
from holdfast.wire.problems import ProblemDetails, ProblemEntry


class ResourcesView(Response):
    """An amount of capacity, written as in manifests."""

    cpu: str
    """Cores: ``2``, ``0.5``."""
    memory: str
    """Bytes with a unit: ``512Mi``; ``0`` is no limit."""
    gpu: int


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


class RunView(Response):
    """One process or pod of an attempt."""

    uid: str
    rank: int
    state: str
    """Pending, Running, Succeeded, Failed or Cancelled."""
    phase: str
    node: str | None = None
    executor: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    ended_by: str | None = None
    message: str = ""
    conditions: list[str] = Field(default_factory=list)
    containers: list[ContainerView] = Field(default_factory=list)
    log_tail: list[str] = Field(default_factory=list)
    progress: str = ""
    """What it last wrote to its progress file, as of a few seconds ago while it runs."""
    peak_memory: int | None = None
    """Bytes, when the engine measured it."""
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
    conditions: list[str] = Field(default_factory=list)
    message: str = ""
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


class JobSummary(Response):
    """A job as lists show it."""

    id: str
    name: str
    queue: str
    state: str
    """Queued, Running, BackOff, Held, Waiting (for its job set), Succeeded, Failed or Cancelled."""
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


class JobAccepted(JobSummary):
    """A job that was submitted."""

    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in its manifest, or accepted only by a lenient reading."""


class JobApplied(JobAccepted):
    """A Kubernetes Job that was applied, and what became of it."""

    result: str
    """``created``, ``suspended``, ``resumed`` or ``unchanged``."""


class JobView(JobSummary):
    """A job with everything known of it."""

    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    counters: dict[str, int]
    """Retries granted, by ``<policy>/<rule>``."""
    spec: dict[str, Any]
    """The specification, as a native manifest's ``spec``."""
    attempts: list[AttemptView]
    pods: PodsView | None = None
    """Of a job whose runs are pods, each replaced by itself."""


class JobPage(Response):
    """Part of a list of jobs; items are ``JobView`` when asked for with ``fields=full``."""

    items: Sequence[JobView | JobSummary]
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
    error: ProblemDetails | None = None
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious in it, or accepted only by a lenient reading."""


class BulkResult(Response):
    """What became of a bulk submission, in the order sent."""

    items: list[BulkItem]


class Reason(Body):
    """Why a user cancels, holds or releases a job."""

    reason: str = Field(default="", max_length=1000)


class StatesQuery(Body):
    """Which jobs' states to return."""

    ids: list[str] = Field(max_length=10_000)


class JobStates(Response):
    """States by job id; unknown ids are left out."""

    states: dict[str, str]


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
