"""One tick of the controller: take in, decide, commit, publish.

Decides the order of a tick's steps and nothing else; work is bounded per tick, and nothing is published
that is not durable (architecture decisions 5 to 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.controller.coordinator import KILL_ALLOWANCE_S, Coordinator
from holdfast.controller.handlers import (
    PrepareAttempts,
    ScheduleAttempts,
    StartAttempts,
    TerminateAttempts,
    prepared_at_once,
)
from holdfast.controller.intake import Intake
from holdfast.controller.lawbook import LawBook
from holdfast.controller.losses import Losses
from holdfast.controller.observations import Observations
from holdfast.controller.patience import Patience
from holdfast.controller.publisher import Publisher
from holdfast.controller.sets.sets import PodSettings, Sets
from holdfast.controller.world import Active, World
from holdfast.domain import verdict
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.scheduling import RoundLimits
from holdfast.domain.verdict import Circumstances, Verdict
from holdfast.errors import Unavailable, Uncertain
from holdfast.ports.exchange import ExchangeResponse
from holdfast.ports.store import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.spec import JobSpec
    from holdfast.ports.clock import Dice, SteadyClock
    from holdfast.ports.exchange import ExchangeRequest
    from holdfast.ports.store import ControllerStore


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How a controller paces itself."""

    requests_per_tick: int = 200
    look_every_s: float = 0.0
    """How often requests and the catalogue are looked for at most, unless a tick is told to look; 0 is every tick."""
    attempts_per_tick: int = 500
    """How many attempts a tick works on at most; in a storm the others wait for the next, which comes at once."""
    attempts_at_once: int = 16
    """How many it works on at least, if there are so many."""
    pod_jobs_per_tick: int = 5000
    """How many jobs made of pods it works on at most, each of which is less work."""
    sweep_every_s: float = 1.0
    """How often statuses are looked at for being overdue, and waiting reasons are renewed."""
    executor_lease_s: float | None = 60.0
    """After how long a silent executor counts as lost; ``None``: never, for an executor in this process."""
    epoch: int | None = None
    """Under which the store lets it commit; ``None`` where it owns the store alone."""
    places: bool = True
    """Whether what waits is started; else only what was started already is looked after."""
    round_limits: RoundLimits = RoundLimits()  # noqa: RUF009 - frozen
    pods: PodSettings = PodSettings()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick did."""

    responses: Mapping[str, ExchangeResponse]
    """Answers, by executor, to the exchanges it was given; none to what was overtaken, nor when the commit failed."""
    changed: frozenset[str]
    """Executors whose desired set changed: worth a hint."""
    refused: Unavailable | None
    """Why nothing could be committed, if so; it is tried again at the next tick."""
    more: bool
    """Whether there is more to do at once."""
    next_due: float | None
    """When something is due by time."""
    written: Changes
    """What was committed, for telemetry; empty when nothing was."""


class Controller:
    """The one writer of lifecycle state."""

    def __init__(
        self,
        store: ControllerStore,
        *,
        clock: SteadyClock,
        dice: Dice,
        load_spec: Callable[[str], JobSpec],
        memory: str,
        settings: ControllerSettings | None = None,
    ) -> None:
        """Take in everything that was going on.

        Args:
            store: What is durable.
            clock: Its time.
            dice: For jitter.
            load_spec: Reads a job's stored specification.
            memory: A name no other controller on this store had, in this process or another; executors repeat it.
            settings: How it paces itself.
        """
        self._store = store
        self._clock = clock
        self._dice = dice
        self._settings = settings or ControllerSettings()
        self._memory = memory
        self._patience = Patience(clock)
        self.world = World(load_spec, since=self._patience.since)
        self._book = LawBook(store)
        snapshot = store.load()
        self._losses = Losses(self.world, snapshot.losses)
        lease_s = self._settings.executor_lease_s
        self._observations = Observations(self.world, self._losses, memory=memory, lease_s=lease_s, steady=clock.steady)
        self._publisher = Publisher(self.world)
        self._sets = Sets(self.world, self._book, store, dice, self._pod_settings())
        self._intake = Intake(self.world, store.jobs_by_id, self._circumstances, self._sets)
        self._coordinator = Coordinator(
            self.world,
            conclude=self._conclude,
            requeue=self._requeue,
            lease_s=lease_s,
        )
        self._schedule = ScheduleAttempts(self.world, self._book.queues, self._settings.round_limits, self._sets.placed)
        self._phases = (
            PrepareAttempts(),
            StartAttempts(self._observations.alive),
            TerminateAttempts(self.world),
        )
        self._looked_at = self._swept_at = float("-inf")
        self.world.restore(snapshot)
        self._sets.restore(snapshot)
        for active in self.world.active.values():
            for run in active.runs.values():
                self._observations.expect(run)

    def tick(self, exchanges: Sequence[ExchangeRequest] = (), *, look: bool = False) -> Ticked:
        """Run one tick.

        Args:
            exchanges: What executors tell.
            look: Look for requests at once, because there was a hint that there are some.

        Raises:
            Uncertain: The commit may have been made, or not: this memory is of no use any more.
        """
        now = self._clock.now()
        self._patience.look(now)
        more = self._look(now) if look or now - self._looked_at >= self._settings.look_every_s else False
        for exchange in exchanges:
            self._observations.take(exchange, now)
        self._intake.due(now)
        self._sweep(now)
        self._advance(now)
        written = self.world.changes
        refused = self._commit()
        changed = frozenset() if refused else self._publisher.publish(now)
        told = [exchange for exchange in exchanges if not self._observations.is_overtaken(exchange)]
        responses = {exchange.executor: self.answer(exchange) for exchange in told if not refused}
        return Ticked(
            responses=responses,
            changed=changed,
            refused=refused,
            more=more or self._has_more(),
            next_due=min((at for at in (self.world.next_due(), self._sets.next_due()) if at is not None), default=None),
            written=Changes() if refused else written,
        )

    def _has_more(self) -> bool:
        return bool(self.world.touched or self.world.backlog) or self.world.schedule_needed or self._sets.has_more()

    def answer(self, exchange: ExchangeRequest) -> ExchangeResponse:
        """Return what an executor should have, as of the last commit."""
        desired = self._publisher.desired(exchange.executor)
        missed = self._observations.missed(exchange)
        if missed:
            desired = {uid: wanted for uid, wanted in desired.items() if uid not in missed}
        return ExchangeResponse(exchange.sequence, self._memory, desired)

    def _look(self, now: float) -> bool:
        """Read what people and operators asked for; returns whether there may be more."""
        self._looked_at = now
        if self._book.refresh():
            self.world.schedule_needed = True
        if self.world.changes.handled:
            return False
        requests = self._store.requests(limit=self._settings.requests_per_tick)
        self._intake.take(requests, now)
        return len(requests) == self._settings.requests_per_tick

    def _sweep(self, now: float) -> None:
        if now - self._swept_at < self._settings.sweep_every_s:
            return
        self._swept_at = now
        self._observations.lose_silent(now)
        self._observations.write_progress(now)
        self._coordinator.wake_overdue(now)
        self._sets.sweep()
        self.world.schedule_needed = True

    def _advance(self, now: float) -> None:
        """Work off what was touched, within the bounds of a tick, then place what waits and work that off too."""
        bounds = self._settings
        self._settle(self.world.take_backlog(least=bounds.attempts_at_once, most=bounds.attempts_per_tick), now)
        self._sets.advance(now, most=bounds.pod_jobs_per_tick)
        if self.world.schedule_needed:
            self.world.schedule_needed = False
            if self._settings.places:
                self._coordinator.run(self._schedule, self._schedule.source(now), now)
            self._settle(self.world.take_touched(), now)
            self._sets.follow_up(now)

    def _pod_settings(self) -> PodSettings:
        lease_s = self._settings.executor_lease_s or 0.0
        return replace(self._settings.pods, patience_s=lease_s + KILL_ALLOWANCE_S)

    def _settle(self, batch: list[Active], now: float) -> None:
        """Move attempts on, and those that touches in turn, as far as they go."""
        while batch:
            for active in batch:
                prepared_at_once(self.world, active, now)
                self._coordinator.promote(active, now)
            for phase in self._phases:
                self._coordinator.run(phase, [active for active in batch if self._in_flight(active)], now)
            batch = self.world.take_touched()

    def _in_flight(self, active: Active) -> bool:
        return self.world.active.get(active.attempt.job_id) is active

    def _commit(self) -> Unavailable | None:
        changes = self.world.changes
        if not changes:
            return None
        changes.epoch = self._settings.epoch
        try:
            self._store.commit(changes)
        except Uncertain:
            raise  # to commit this again could write its events twice; what is durable is read anew instead
        except Unavailable as error:
            return error
        self.world.changes = Changes()
        return None

    def _circumstances(self, job: Job, now: float) -> Circumstances:
        spec = self.world.spec(job)
        places = list(self.world.ledger.places.values())
        return Circumstances(self._book.law(job, spec, places), spec, now, self._dice.draw())

    def _conclude(self, active: Active, now: float) -> Verdict:
        runs = sorted(active.runs.values(), key=lambda run: run.rank)
        at = self._circumstances(active.job, now)
        suspicion = self._losses.suspicion(active.job.id, runs)
        if suspicion is not None:
            at = replace(at, suspicion=suspicion)
        return verdict.conclude(active.job, active.attempt, runs, at)

    def _requeue(self, active: Active, now: float, why: str) -> None:
        """Take an attempt that was never handed out off its places; it will be placed anew with fresh uids."""
        for run in list(active.runs.values()):
            self.world.put_run(active, replace(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
        attempt = replace(active.attempt, status=AttemptStatus.PENDING, status_since=now, tries=0, message=why)
        self.world.withdraw(active, attempt)
        job = replace(
            active.job, state=JobState.QUEUED, reason=why, attempt=attempt.number - 1, queued_at=now, updated_at=now
        )
        self.world.put_job(job)
