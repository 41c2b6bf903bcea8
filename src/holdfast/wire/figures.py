"""Wire models of figures over many jobs."""

from pydantic import Field

from holdfast.wire.arrays import ArrayView
from holdfast.wire.base import Response, Timestamp
from holdfast.wire.catalogue import DeviceView, NodeView
from holdfast.wire.jobs import JobOutcome


class FailureTotal(Response):
    """Failures of one kind."""

    kind: str
    """The category, such as ``memory/limit``, or the cause if there is none."""
    count: int
    lost_s: float
    """The time that the failed attempts had run."""


class UsageView(Response):
    """What the jobs of a user, queue, group or label used; hours are those of runs, by their requests."""

    name: str
    """Empty for jobs without any."""
    runs: int
    """Starts of programs; for a gang, of each rank."""
    failed_runs: int
    """Runs that failed, or whose attempts did."""
    cpu_hours: float
    memory_gib_hours: float
    gpu_hours: float
    wasted_cpu_hours: float
    """The part of ``cpu_hours`` used by failed runs; what they saved in checkpoints is not known."""
    wasted_memory_gib_hours: float
    wasted_gpu_hours: float


class UsageReport(Response):
    """Usage within a period; only the part within it counts."""

    since: Timestamp
    until: Timestamp
    items: list[UsageView]
    """Shares, by name."""


class NodeTotal(Response):
    """Failures on one node."""

    node: str
    count: int
    lost_s: float
    """The time that the failed attempts had run."""


class SummaryView(Response):
    """Figures of jobs within a period; only the part within it counts."""

    since: Timestamp
    until: Timestamp
    jobs: dict[str, int] = Field(default_factory=dict)
    """Unfinished jobs, and those that ended in the period, by state."""
    attempts: int
    """Attempts that ran in the period."""
    retries: int
    """Attempts among them that followed a failed one."""
    failed: int
    """Failures of attempts, and of pods that are replaced one by one; cancelled, held, suspended, drained or preempted
    attempts are not failures.
    """
    failures: list[FailureTotal] = Field(default_factory=list)
    """By kind, the most frequent first."""
    nodes: list[NodeTotal] = Field(default_factory=list)
    """Failures by node, the most frequent first."""
    ran_s: float
    """The time that all attempts ran."""
    productive_s: float
    """The time of attempts that succeeded or still run."""
    wall_s: float
    """The time from the first start of each job to its end, or until now."""
    lost_s: float
    """The time that failed attempts had run."""
    ettr: float | None = None
    """Effective training time ratio: ``productive_s`` by ``wall_s``; absent if nothing has run."""
    recoveries: int
    """Failed attempts that were followed by another one."""
    mean_recovery_s: float | None = None
    """The time from the end of a failed attempt to the start of the next."""


class QueueLoad(Response):
    """The unfinished jobs of a queue."""

    queue: str
    jobs: dict[str, int] = Field(default_factory=dict)
    """Their number by state."""


class OverviewView(Response):
    """The present state of everything, of a size that does not grow with the number of jobs."""

    at: Timestamp
    jobs: dict[str, int] = Field(default_factory=dict)
    """The number of all jobs by state."""
    queues: list[QueueLoad] = Field(default_factory=list)
    """Queues with unfinished jobs, by name."""
    nodes: list[NodeView] = Field(default_factory=list)
    devices: list[DeviceView] = Field(default_factory=list)
    arrays: list[ArrayView] = Field(default_factory=list)
    """Unfinished job sets and arrays of the jobs listed here."""
    running: list[JobOutcome] = Field(default_factory=list)
    """Running jobs, the last submitted first."""
    failing: list[JobOutcome] = Field(default_factory=list)
    """Jobs waiting for a retry or for a person, and the last failed among the last thousand failed jobs."""


class JobNames(Response):
    """Names of jobs."""

    items: list[str]
