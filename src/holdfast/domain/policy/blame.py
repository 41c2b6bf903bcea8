"""Finds the job that takes down its node and everything else running there, from the losses of nodes alone.

When a node is lost, all jobs on it are lost alike. What distinguishes the culprit from its victims is the time it was
away: meanwhile the others kept running, and the node was lost only once the culprit was back.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import Backoff, JitterMode
from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUSPECT_AFTER = 3
"""Losses in a row, each with other jobs, that make a job suspect."""
CHANCE = 0.001
"""A suspect is to blame if an innocent job would look like this with a smaller probability."""
_KEPT = 12
"""How many losses of an executor are remembered."""
_MOST_JOBS = 256
"""How many jobs of one loss are remembered: those that had been there for the shortest time."""
_SAME_MOMENT_S = 5.0
_COARSE_S = 1.0
"""Precision of a loss's time; a shorter run counts as this long."""
_AWAY = 4
"""A suspect stays away this many times as long as it ran."""
_LONGEST_AWAY_S = 1800.0
_MOST_NAMED = 5


class Loss(Struct, frozen=True):
    """One moment at which jobs were lost together with their nodes."""

    executor: str
    nodes: frozenset[str]
    at: float
    jobs: Mapping[str, float]
    """How long each job had been there, in seconds, by its id."""
    job_count: int
    """How many jobs were lost, remembered or not."""
    longest_s: float
    """How long the longest-running of them had been there."""


class Suspicion(Struct, frozen=True):
    """The evidence that losses give against one job."""

    nodes: tuple[str, ...]
    executor: str
    others: tuple[int, ...]
    """How many other jobs each of the successive losses took, the oldest loss first."""
    rivals: int
    """How many other jobs were part of all these losses."""
    ran_s: float
    """How long the job ran there since the first of the losses."""
    watched_s: float
    """How long any job ran there, as far as the losses show."""
    longest_s: float
    """The longest it ran there before a loss."""

    @property
    def chance(self) -> float:
        """The probability that losses at random moments all fall into this job's time."""
        if not self.watched_s:
            return 1.0
        return float((self.ran_s / self.watched_s) ** (len(self.others) - 1))

    @property
    def is_to_blame(self) -> bool:
        """Whether no other job can be the cause and chance is ruled out."""
        return not self.rivals and self.chance < CHANCE

    @property
    def absence(self) -> Backoff:
        """How long it stays away, so that the next loss gives evidence; jittered, so that suspects return apart."""
        base = min(_AWAY * max(self.longest_s, _COARSE_S), _LONGEST_AWAY_S)
        return Backoff(base, None, 1.0, JitterMode.DETERMINISTIC, 1.0)

    def in_words(self) -> str:
        """Return ``was running at each of the last 3 losses of node a, which took 5, 7 and 4 other jobs with it``."""
        last = self.others[-_MOST_NAMED:]
        numbers = ", ".join(map(str, last[:-1])) + f" and {last[-1]}"
        lately = "" if len(last) == len(self.others) else " lately"
        return (
            f"was running at each of the last {len(self.others)} losses of {self._place()}, "
            f"which{lately} took {numbers} other jobs with it"
        )

    def evidence(self) -> str:
        """Return ``although it ran for only 3s of the 1m in which jobs ran there``."""
        ran, watched = format_duration(round(self.ran_s)), format_duration(round(self.watched_s))
        return f"although it ran for only {ran} of the {watched} in which jobs ran there"

    def _place(self) -> str:
        names = [name for name in self.nodes if name]
        if not names:
            return f"executor {self.executor}"
        return f"node {names[0]}" if len(names) == 1 else f"nodes {', '.join(names[:-1])} and {names[-1]}"


def make_loss(executor: str, at: float, ran: Mapping[str, float], nodes: frozenset[str]) -> Loss:
    """Record a loss, keeping only the jobs that matter."""
    shortest = sorted(ran.items(), key=lambda run: (run[1], run[0]))[:_MOST_JOBS]
    return Loss(executor, nodes, at, dict(shortest), len(ran), max(ran.values(), default=0.0))


def add_loss(losses: Sequence[Loss], new: Loss) -> tuple[Loss, ...]:
    """Add a loss to those of its executor, merging parts of one loss that were reported separately."""
    last = losses[-1] if losses else None
    if last is None or not is_same_loss(last, new):
        return (*losses, new)[-_KEPT:]
    both = {job: max(last.jobs.get(job, 0.0), new.jobs.get(job, 0.0)) for job in {**last.jobs, **new.jobs}}
    took = last.job_count + new.job_count - len(last.jobs.keys() & new.jobs.keys())
    longest_s = max(last.longest_s, new.longest_s)
    return (*losses[:-1], Loss(last.executor, last.nodes | new.nodes, last.at, both, took, longest_s))


def is_same_loss(last: Loss, new: Loss) -> bool:
    """Whether this is a part of the last loss; a job that has returned since then was lost again."""
    return new.at - last.at < _SAME_MOMENT_S and all(new.at - ran_s < last.at for ran_s in new.jobs.values())


def find_suspicion(losses: Sequence[Loss], job_id: str) -> Suspicion | None:
    """Return the evidence of an executor's losses against a job, or ``None`` if there is too little.

    Args:
        losses: In order of time.
        job_id: A job that was part of the last loss.
    """
    row = _losses_in_a_row(losses, job_id)
    if sum(item.job_count > 1 for item in row) < SUSPECT_AFTER:
        return None
    ran_s = watched_s = 0.0
    for before, item in pairwise(row):
        own_s = max(item.jobs[job_id], _COARSE_S)
        away_s = min(item.longest_s, item.at - before.at) - own_s
        ran_s += own_s
        watched_s += own_s + max(0.0, away_s)
    rivals = set.intersection(*({*item.jobs} for item in row)) - {job_id}
    return Suspicion(
        nodes=tuple(sorted(frozenset[str]().union(*(item.nodes for item in row)))),
        executor=row[-1].executor,
        others=tuple(item.job_count - 1 for item in row),
        rivals=len(rivals),
        ran_s=ran_s,
        watched_s=watched_s,
        longest_s=max(item.jobs[job_id] for item in row),
    )


def find_culprit(losses: Sequence[Loss]) -> tuple[str, Suspicion] | None:
    """Find the job that is to blame for an executor's last losses, if there is one."""
    for job_id in losses[-1].jobs if losses else ():
        suspect = find_suspicion(losses, job_id)
        if suspect is not None and suspect.is_to_blame:
            return job_id, suspect
    return None


def _losses_in_a_row(losses: Sequence[Loss], job_id: str) -> list[Loss]:
    """Return the latest losses that the job was part of, oldest first, back to the last one without it.

    A job that is retried elsewhere may take that node down, too; losses of other nodes in between do not count.
    """
    row: list[Loss] = []
    nodes: frozenset[str] = frozenset()
    for loss in reversed(losses):
        if job_id in loss.jobs:
            row.append(loss)
            nodes |= loss.nodes
        elif nodes & loss.nodes:
            break
    return row[::-1]
