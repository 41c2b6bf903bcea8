"""Wires the parts that look after job sets and jobs made of pods; decides only in which order they take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.controller.sets.attempts import PodAttempts
from holdfast.controller.sets.container_restarts import CRASH_BACKOFF, ContainerRestarts, SetSide
from holdfast.controller.sets.intake import SetIntake
from holdfast.controller.sets.jobsets import JobSets
from holdfast.controller.sets.plans import Plans
from holdfast.controller.sets.pod_queue import PodQueue
from holdfast.controller.sets.podjobs import KubeJobs
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.sets.memory import SetWork
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.placement import PlaceKey
    from holdfast.domain.policy.model import Backoff
    from holdfast.domain.workloads.jobset.state import Event, JobSetState
    from holdfast.ports.clock import Dice
    from holdfast.ports.store import ControllerStore, Snapshot

_MOST_TURNS = 32
"""More than anything needs to settle: a decision, the jobs that go, those that come, how they look."""


@dataclass(frozen=True, slots=True)
class PodSettings:
    """How patient job sets and jobs made of pods are, where their manifests do not say."""

    backoff: Backoff = POD_BACKOFF
    """Before a Job replaces failed pods."""
    crash_backoff: Backoff = CRASH_BACKOFF
    """Before a program starts again in its pod."""
    patience_s: float = 90.0
    """How long after its grace a stopped program may take to be confirmed gone, its executor's lease included."""


class Sets:
    """Job sets and jobs made of pods."""

    def __init__(
        self, state: ControllerState, catalog: PolicyCatalog, store: ControllerStore, dice: Dice, settings: PodSettings
    ) -> None:
        """Wire it."""
        self._sets: dict[str, SetWork] = {}
        plans = Plans(self._sets, settings.backoff)
        self._line = PodQueue(state)
        owner = SetSide(self._state_of, self._tell)
        again = ContainerRestarts(
            state, self._line, catalog, draw=dice.draw, owner=owner, backoff=settings.crash_backoff
        )
        attempts = PodAttempts(
            state,
            awaiting_domain=self._line.awaiting_domain.__contains__,
            categories=lambda: catalog.categories,
            patience_s=settings.patience_s,
        )
        self.pods = KubeJobs(state, self._line, plans, again, attempts)
        self._jobsets = JobSets(
            state,
            self.pods,
            plans,
            self._sets,
            restarts_allowed=lambda: catalog.catalogue.settings.global_max_retries != 0,
        )
        self.intake = SetIntake(
            state,
            self._jobsets,
            self.pods,
            plans,
            rows_by_id=store.job_sets_by_id,
            children_of=store.children_of,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Take in what was going on when the last controller stopped."""
        self._jobsets.restore(snapshot)
        self.pods.restore(snapshot)

    def placed(self, placements: Iterable[tuple[str, PlaceKey]], now: float) -> None:
        """Hand out pods that got their places."""
        self.pods.placed(placements, now)

    def sweep(self) -> None:
        """Look again at what only others can give back."""
        self.pods.sweep()

    def advance(self, now: float, *, most: int) -> None:
        """Look at jobs something happened to, at most so many, and at every set that concerns."""
        self.pods.note(now, most)
        self.pods.advance(now)
        self._jobsets.advance(now)
        self.follow_up(now)

    def follow_up(self, now: float) -> None:
        """Go on with what only just came about, as far as it is urgent: sets have seen how everything else stands."""
        for _ in range(_MOST_TURNS):
            self.pods.advance(now)
            if not self._jobsets.advance(now, urgent=True):
                break
        self.pods.set_aside(now)

    def has_more(self) -> bool:
        """Whether there is more to look at at once."""
        return self.pods.has_more() or self._jobsets.has_more()

    def next_due(self) -> float | None:
        """Return when something is to be looked at although nothing happens."""
        due = (self.pods.timers.next(), self._jobsets.next_due())
        return min((at for at in due if at is not None), default=None)

    def _state_of(self, job: Job) -> JobSetState | None:
        work = self._sets.get(job.child.set_id) if job.child is not None else None
        return None if work is None else work.row.state

    def _tell(self, job: Job, event: Event, now: float) -> None:
        work = self._sets.get(job.child.set_id) if job.child is not None else None
        if work is not None:
            self._jobsets.log(work.row, event, now)
