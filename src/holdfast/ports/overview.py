"""Queries about many jobs at once: one query for all of them, never one per job."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, JobState, Resources, Run

MOST_RANKS = 4
"""Ranks of a gang whose runs appear in lists."""


class StateOfJob(NamedTuple):
    """The state of a job."""

    state: JobState
    has_started: bool
    """Whether an attempt has begun."""


class Latest(Struct, frozen=True):
    """What lists show of a job besides its own record."""

    labels: Mapping[str, str] = field(default_factory=dict)
    attempt: Attempt | None = None
    """The current or last attempt."""
    runs: Sequence[Run] = ()
    """The newest runs of that attempt's first ``MOST_RANKS`` ranks, by rank."""


class FigureScope(Struct, frozen=True):
    """The jobs and the period of figures; only the part within the period counts.

    Times are seconds since the epoch, UTC.
    """

    since: float
    until: float
    """When unfinished work is taken to end."""
    queue: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    seen: Seen | None = None
    """Only jobs that the caller may know of; ``None``: all."""


class FailureFigures(Struct, frozen=True):
    """Failures of one kind on one node."""

    cause: str
    category: str
    subcategory: str
    node: str
    count: int
    lost_s: float
    """The time that the failed attempts had run."""


class AttemptFigures(Struct, frozen=True):
    """Attempts with the same end, or unfinished ones."""

    count: int
    retries: int
    """Attempts that followed a failed one; an attempt that was stopped deliberately did not fail."""
    ran_s: float


class Recoveries(Struct, frozen=True):
    """Failed attempts that were followed by another one; deliberately stopped ones do not count."""

    count: int
    mean_s: float | None
    """The time from the end of the failed attempt to the next start; ``None`` if there are none."""


class Share(StrEnum):
    """The keys of usage reports."""

    USER = "user"
    """The owner of the jobs."""
    QUEUE = "queue"
    GROUP = "group"
    LABEL = "label"
    """The value of one label."""


class UsageFigures(Struct, frozen=True):
    """Runs with the same key that used the same amounts."""

    name: str
    """The user, queue, group or label value; empty if there is none."""
    request: Resources
    """The amount of each run."""
    wasted: bool
    """Whether the runs or their attempts failed."""
    runs: int
    ran_s: float
    """The sum of their durations."""


class OverviewStore(Protocol):
    """Queries about many jobs."""

    def job_figures(self, scope: FigureScope) -> Mapping[str, int]:
        """Count jobs by state: unfinished ones, and those that ended in the period."""

    def wall_time(self, scope: FigureScope) -> float:
        """Sum up the time of jobs from their first start to their end, in seconds."""

    def attempt_figures(self, scope: FigureScope) -> Mapping[str | None, AttemptFigures]:
        """Sum up the attempts in the period by how they ended; ``None`` stands for unfinished ones."""

    def failure_figures(self, scope: FigureScope) -> Sequence[FailureFigures]:
        """Sum up the failures in the period, of attempts and of pods replaced one by one; the most frequent first."""

    def usage_figures(self, scope: FigureScope, share: Share, label: str = "") -> Sequence[UsageFigures]:
        """Sum up the durations and amounts of runs by a key; ``label`` names the label if that is the key."""

    def recoveries(self, scope: FigureScope) -> Recoveries:
        """Sum up the attempts that started in the period after a failed one."""

    def queue_load(self, *, seen: Seen | None = None) -> Mapping[tuple[str, JobState], int]:
        """Count unfinished jobs by queue and state, as far as the caller may know of them."""

    def job_names(self, prefix: str, *, limit: int) -> Sequence[str]:
        """List names with a prefix, of jobs outside job sets and arrays; each once, in order."""

    def newest(
        self, states: Collection[JobState], *, limit: int, named: str = "", seen: Seen | None = None
    ) -> Sequence[Job]:
        """List jobs in these states, the last submitted first.

        Args:
            states: The states.
            limit: The most to list.
            named: A part of their names, in any case.
            seen: Only jobs that the caller may know of; ``None``: all.
        """

    def attempts_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        """List the attempts of jobs, in order; jobs without any are left out."""

    def last_runs_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Run]]:
        """List the runs of the last attempts of jobs; jobs without any are left out."""

    def latest_of(self, job_ids: Sequence[str]) -> Mapping[str, Latest]:
        """Return the labels, the last attempt and its runs of jobs; unknown ids are left out."""
