"""What those ask of the store who look at many jobs at once: one question for all of them, never one for each."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, JobState, Resources, Run

MOST_RANKS = 4
"""Of a gang, whose runs are of interest in a list."""


class StateOfJob(NamedTuple):
    """How far a job is."""

    state: JobState
    has_started: bool
    """Whether an attempt at it has begun."""


class Latest(Struct, frozen=True):
    """What a list says of a job beside its own record."""

    labels: Mapping[str, str] = field(default_factory=dict)
    attempt: Attempt | None = None
    """Its current or last one."""
    runs: Sequence[Run] = ()
    """That attempt's newest runs of the first ``MOST_RANKS`` ranks, by rank."""


class FigureScope(Struct, frozen=True):
    """Which jobs figures are about, and which time; of what reaches beyond that time only the part within counts.

    Times are seconds since the epoch, UTC.
    """

    since: float
    until: float
    """When what goes on is taken to end."""
    queue: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    seen: Seen | None = None
    """Only those that somebody may know of; ``None``: all."""


class FailureFigures(Struct, frozen=True):
    """Failures that were alike, on one node."""

    cause: str
    category: str
    subcategory: str
    node: str
    count: int
    lost_s: float
    """What they had run for."""


class AttemptFigures(Struct, frozen=True):
    """Attempts that ended alike, or go on."""

    count: int
    retries: int
    """Those of them that followed one that failed; one that was stopped deliberately did not."""
    ran_s: float


class Recoveries(Struct, frozen=True):
    """Failed attempts that another one followed; none of them was stopped deliberately."""

    count: int
    mean_s: float | None
    """From the end of the failed one to the start of the next; ``None`` of none."""


class Share(StrEnum):
    """What usage is reported by."""

    USER = "user"
    """Whose the jobs are."""
    QUEUE = "queue"
    GROUP = "group"
    LABEL = "label"
    """The value of one label."""


class UsageFigures(Struct, frozen=True):
    """Runs that have something in common, and used the same amount while they ran."""

    name: str
    """Of the user, the queue or the group, or the value of the label; empty where there is none."""
    request: Resources
    """What each of them had."""
    wasted: bool
    """Whether they failed, or their attempts did."""
    runs: int
    ran_s: float
    """Together."""


class OverviewStore(Protocol):
    """Queries about many jobs."""

    def job_figures(self, scope: FigureScope) -> Mapping[str, int]:
        """Count jobs by state: those that go on, and those that ended in that time."""

    def wall_time(self, scope: FigureScope) -> float:
        """Sum up the time of jobs from their first start to their end, in seconds."""

    def attempt_figures(self, scope: FigureScope) -> Mapping[str | None, AttemptFigures]:
        """Sum up the attempts of that time by how they ended; ``None`` has those that go on."""

    def failure_figures(self, scope: FigureScope) -> Sequence[FailureFigures]:
        """Sum up the failures of that time, of attempts and of pods by themselves; the most frequent first."""

    def usage_figures(self, scope: FigureScope, share: Share, label: str = "") -> Sequence[UsageFigures]:
        """Sum up for how long runs had what, by what they share; ``label`` is which one, where it is that."""

    def recoveries(self, scope: FigureScope) -> Recoveries:
        """Sum up the attempts that started in that time after one that failed."""

    def queue_load(self, *, seen: Seen | None = None) -> Mapping[tuple[str, JobState], int]:
        """Count the jobs that have not ended by their queue and state; those that somebody may know of."""

    def job_names(self, prefix: str, *, limit: int) -> Sequence[str]:
        """List names that begin so, of jobs that belong to no job set or array; each once, in order."""

    def newest(
        self, states: Collection[JobState], *, limit: int, named: str = "", seen: Seen | None = None
    ) -> Sequence[Job]:
        """List jobs in these states whose names contain a text, in either case; the last submitted first.

        Args:
            states: The states.
            limit: How many at most.
            named: What their names contain.
            seen: Only those that somebody may know of; ``None``: all.
        """

    def attempts_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        """List the attempts of each of those jobs, in order; those that have none are left out."""

    def last_runs_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Run]]:
        """List the runs of the last attempt of each of those jobs; those that have none are left out."""

    def latest_of(self, job_ids: Sequence[str]) -> Mapping[str, Latest]:
        """Return the labels, the last attempt and its runs of each of those jobs; unknown ids are left out."""
