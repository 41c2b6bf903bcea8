"""Reads how often a job is tried: Iris counts failed attempts of each task, and caps those of the whole job.

All tasks of a job are one gang here, which is tried as a whole: a failed attempt of one is a failed attempt of all, and
the smaller of the two limits counts. What was lost with its place is counted by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.fluster.retry import FAILURE as FAILURE  # noqa: PLC0414 - part of this vocabulary
from holdfast.dialects.fluster.retry import LAUNCH, LAUNCHES, NEVER_RAN, PLACE_LOST, PREEMPTION, UNSCHEDULABLE
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, Rule
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.dialects.reading import Fields

POLICY = "iris"
PREEMPTIONS = 1000
"""Retries of what was lost with its place, as Iris' clients have it where nobody says."""
MOST = (1 << 31) - 1
_BACKOFF = Backoff(initial_s=1.0, max_s=60.0)
"""Iris has none, and starts again at once, however often."""


class Budgets(Struct, frozen=True):
    """How often a job may fail in which way."""

    task_failures: int = 0
    """Failed attempts of the whole job."""
    retries: int = 0
    """Retries of each task."""
    preemptions: int = PREEMPTIONS

    @property
    def failures(self) -> int:
        """How many failures are retried: whatever a task has left, the job has to have, too."""
        return min(self.task_failures, self.retries)


def read_budgets(fields: Fields) -> Budgets:
    """Read the three limits of a launch; 0 is 0."""
    failures, retries, preemptions = (
        fields.integer(name, low=0, high=MOST)
        for name in ("max_task_failures", "max_retries_failure", "max_retries_preemption")
    )
    return Budgets(failures or 0, retries or 0, PREEMPTIONS if preemptions is None else preemptions)


def policy_of(budgets: Budgets) -> RetryPolicy:
    """Compile them into one policy."""
    return RetryPolicy(
        name=POLICY,
        rules=(
            Rule(Action.FAIL, UNSCHEDULABLE, conditions=frozenset({FailureCondition.UNSCHEDULABLE})),
            Rule(Action.RETRY, PREEMPTION, conditions=PLACE_LOST, retry_limit=budgets.preemptions, backoff=_BACKOFF),
            Rule(Action.RETRY, LAUNCH, conditions=NEVER_RAN, retry_limit=LAUNCHES, backoff=_BACKOFF),
            Rule(Action.RETRY, FAILURE, retry_limit=budgets.failures, backoff=_BACKOFF),
        ),
        default_action=Action.FAIL,
    )
