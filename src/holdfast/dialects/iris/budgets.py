"""Reads retry limits: Iris counts the failed attempts of each task, and caps those of the whole job.

Here all tasks of a job are one gang, which is retried as a whole: a failed attempt of one is a failed attempt of all,
and the smaller of the two limits counts. Losses with the place are counted separately.
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
"""The default number of retries after a loss with the place, as in Iris' clients."""
MOST = (1 << 31) - 1
_BACKOFF = Backoff(initial_s=1.0, max_s=60.0)
"""Iris has no back-off: it starts again at once, however often."""


class Budgets(Struct, frozen=True):
    """The retry limits of a job."""

    task_failures: int = 0
    """Failed attempts of the whole job."""
    retries: int = 0
    """Retries of each task."""
    preemptions: int = PREEMPTIONS

    @property
    def failures(self) -> int:
        """The number of failures that are retried: both the tasks' and the job's limit must permit it."""
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
