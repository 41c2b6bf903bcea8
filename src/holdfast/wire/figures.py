"""What became of many jobs, as the outside sees it."""

from pydantic import Field

from holdfast.wire.arrays import ArrayView
from holdfast.wire.base import Response, Timestamp
from holdfast.wire.catalogue import DeviceView, NodeView
from holdfast.wire.jobs import JobOutcome


class FailureTotal(Response):
    """Failures of one kind."""

    kind: str
    """The category, as ``memory/limit``, or the cause where it has none."""
    count: int
    lost_s: float
    """What they had run for."""


class UsageView(Response):
    """What the jobs of a user, a queue, a group or a label had; hours are those of runs, for what each asked for."""

    name: str
    """Empty for the jobs that have none."""
    runs: int
    """Starts of a program; of a gang, of each rank."""
    failed_runs: int
    """Those of them that failed, or whose attempts did."""
    cpu_hours: float
    memory_gib_hours: float
    gpu_hours: float
    wasted_cpu_hours: float
    """What of ``cpu_hours`` the failed ones had; what they saved in checkpoints is not known."""
    wasted_memory_gib_hours: float
    wasted_gpu_hours: float


class UsageReport(Response):
    """Who had how much in some time; of what reaches beyond it only the part within counts."""

    since: Timestamp
    until: Timestamp
    items: list[UsageView]
    """By name."""


class NodeTotal(Response):
    """Failures on one node."""

    node: str
    count: int
    lost_s: float
    """What they had run for."""


class SummaryView(Response):
    """What became of jobs in some time; of what reaches beyond it only the part within counts."""

    since: Timestamp
    until: Timestamp
    jobs: dict[str, int] = Field(default_factory=dict)
    """By state: those that go on, and those that ended in that time."""
    attempts: int
    """That ran in that time."""
    retries: int
    """Attempts among them that followed a failed one."""
    failed: int
    """Failures of attempts, and of pods that are replaced by themselves; what was cancelled, held, suspended, drained
    or preempted is none."""
    failures: list[FailureTotal] = Field(default_factory=list)
    """By kind, the most frequent first."""
    nodes: list[NodeTotal] = Field(default_factory=list)
    """Failures by node, the most frequent first."""
    ran_s: float
    """What all attempts ran."""
    productive_s: float
    """What attempts ran that succeeded or still run."""
    wall_s: float
    """The time of jobs from their first start to their end, or until now."""
    lost_s: float
    """What failed attempts had run for."""
    ettr: float | None = None
    """Effective training time ratio: ``productive_s`` by ``wall_s``; absent while nothing has run."""
    recoveries: int
    """Failed attempts that another one followed."""
    mean_recovery_s: float | None = None
    """From the end of the failed one to the start of the next."""


class QueueLoad(Response):
    """The jobs of a queue that have not ended."""

    queue: str
    jobs: dict[str, int] = Field(default_factory=dict)
    """By state."""


class OverviewView(Response):
    """How everything is now, of a size that does not grow with the number of jobs."""

    at: Timestamp
    jobs: dict[str, int] = Field(default_factory=dict)
    """All jobs by state."""
    queues: list[QueueLoad] = Field(default_factory=list)
    """Those with jobs that have not ended, by name."""
    nodes: list[NodeView] = Field(default_factory=list)
    devices: list[DeviceView] = Field(default_factory=list)
    arrays: list[ArrayView] = Field(default_factory=list)
    """Those that go on, of the jobs listed here."""
    running: list[JobOutcome] = Field(default_factory=list)
    """Jobs that run, the last submitted first."""
    failing: list[JobOutcome] = Field(default_factory=list)
    """Jobs that wait for a retry or for a person, and those that failed last among the last thousand that did."""


class JobNames(Response):
    """Names of jobs."""

    items: list[str]
