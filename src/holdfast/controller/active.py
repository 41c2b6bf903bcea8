"""An attempt in flight, as the controller holds it in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import RunOrder


class Active(Struct, eq=False, gc=True):
    """An attempt in flight with the runs of its current dispatch."""

    job: Job
    attempt: Attempt
    spec: JobSpec
    runs: dict[str, Run] = field(default_factory=dict)
    last: HistoryRow | None = None
    """The last step of its history."""
    placed: int = 0
    """For pods: how many runs were created so far, so that no uid is used twice."""
    pods: bool = False
    """Whether its runs are pods that come and go one by one, each counting as a job of its queue."""
    order: Callable[[Run, float], RunOrder] | None = None
    """Writes the current order for one of its runs, if the specification alone is not enough."""

    def fresh_uid(self, rank: int) -> str:
        """Return a uid that no run of this attempt has had."""
        self.placed += 1
        return f"{self.attempt.job_id}-{self.attempt.number}-{rank}-{self.placed}"

    @property
    def counts_for(self) -> int:
        """How much it counts against its queue's limits: one, or the number of its pods that have not ended."""
        return sum(run.status not in RUN_TERMINAL for run in self.runs.values()) if self.pods else 1
