"""One tick of the controller: take in, decide, commit, publish.

Commit before publish: an order that an executor has received cannot be taken back, and a controller that dies remembers
only what it has written. If it published first and then died, a program would run that no record mentions, and the next
controller would start it again. So a tick collects all changes in memory, writes them in one transaction, and only then
changes what executors should have. If the database refuses the commit, the changes wait for the next tick, and
executors keep what they had. If nobody knows whether the commit was made (``Uncertain``), this controller ends: writing
it again could emit its events twice, so the durable state is read anew. A crash between commit and publication costs
nothing, because executors are told everything they should have, again and again.

Adoption: programs outlive the controller, so a new one must not mistake the silence at its start for their end. It
reads every unfinished job, assumes that each run handed out is still going on, and restarts the lease of its executor.
A run is missed only once its executor has answered this controller, named by its epoch, without that run
(``observations``). Until then nothing of it is started a second time.

Work per tick is bounded, so that a burst of requests or failures delays nobody's lease.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.clocks import Patience, in_our_time, retried_sooner
from holdfast.controller.evictions import Drains, Evictions
from holdfast.controller.hopeless import Hopeless, HopelessAfter
from holdfast.controller.kind import ForEach, Pace
from holdfast.controller.nodes.losses import Away
from holdfast.controller.observations import Observations
from holdfast.controller.placement import Placer
from holdfast.controller.policy_catalog import PolicyCatalog, PolicyJudge
from holdfast.controller.publisher import Publisher
from holdfast.controller.readable import strays
from holdfast.controller.reconcile import Quarantine, Reconciler, Requests, refuse
from holdfast.controller.state import ControllerState
from holdfast.controller.workloads.kinds import Kinds, PodSettings, Wiring, all_kinds
from holdfast.domain.event_mapping import add_groups
from holdfast.domain.placement.scheduling import RoundLimits
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import UNREAD
from holdfast.domain.workloads.gang.flight import KILL_ALLOWANCE_S
from holdfast.errors import Unavailable, Uncertain
from holdfast.ports.exchange import ExchangeResponse
from holdfast.ports.store import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.clock import Dice, SteadyClock
    from holdfast.ports.exchange import ExchangeRequest
    from holdfast.ports.store import ControllerStore, Snapshot


class ControllerSettings(Struct, frozen=True):
    """Limits and intervals of a controller."""

    requests_per_tick: int = 200
    look_every_s: float = 0.0
    """Shortest time in seconds between checks for requests and a new catalogue, unless asked to check; 0 checks every
    tick."""
    attempts_per_tick: int = 500
    """The most attempts that a tick handles; in a storm the others wait for the next tick, which follows at once."""
    attempts_at_once: int = 16
    """The fewest attempts that a tick handles, if there are as many."""
    kube_jobs_per_tick: int = 5000
    """The most jobs made of pods that a tick handles; each is less work than an attempt."""
    sweep_every_s: float = 1.0
    """Seconds between checks for overdue statuses, which also renew the reasons of waiting jobs."""
    executor_lease_s: float | None = 60.0
    """Seconds of silence after which an executor counts as lost; ``None`` for an executor in this process."""
    epoch: int | None = None
    """The epoch under which the store accepts its commits; ``None`` if it is the store's only user."""
    places: bool = True
    """Whether to start waiting work; otherwise only running work is looked after."""
    round_limits: RoundLimits = RoundLimits()
    hopeless: HopelessAfter = HopelessAfter()
    """How long a job waits that no node could ever hold."""
    pods: PodSettings = PodSettings()
    token_digest: Callable[[str], str] = lambda _: ""
    """Returns the hash of a run's own token by the run's uid; empty if the run has none."""
    kinds: Callable[[Wiring], Kinds] = all_kinds
    """The kinds of workloads."""


class Ticked(Struct, frozen=True):
    """The result of a tick."""

    responses: Mapping[str, ExchangeResponse]
    """Responses to exchanges, by executor; none for an overtaken exchange or after a failed commit."""
    changed: frozenset[str]
    """Executors whose desired set changed and which should be notified."""
    refused: Unavailable | None
    """Why the commit was refused, if it was; the next tick tries again."""
    more: bool
    """Whether there is more work to do at once."""
    next_due: float | None
    """When the next work is due."""
    written: Changes
    """The committed changes, for telemetry; empty if there were none."""


class Controller:
    """The only writer of lifecycle state."""

    def __init__(
        self,
        store: ControllerStore,
        *,
        clock: SteadyClock,
        dice: Dice,
        load_spec: Callable[[str], JobSpec],
        controller_epoch: str,
        settings: ControllerSettings | None = None,
    ) -> None:
        """Restore everything that was in progress.

        Args:
            store: The database.
            clock: Tells the time.
            dice: Supplies jitter.
            load_spec: Parses a job's stored specification.
            controller_epoch: A name no other controller on this store had; executors acknowledge it.
            settings: Limits and intervals.
        """
        self._store = store
        self._clock = clock
        self._dice = dice
        self._settings = settings or ControllerSettings()
        self._controller_epoch = controller_epoch
        self._patience = Patience(clock)
        self.state = ControllerState(load_spec, since=self._patience.since)
        self.state.token_digest = self._settings.token_digest
        self.quarantine, self._away = Quarantine(self.state), Away(self.state)
        self._catalog = PolicyCatalog(store)
        self.state.outbox.queue_notify = self._catalog.queue_notify
        snapshot = store.load()
        self._observations = Observations(
            self.state,
            self.quarantine,
            controller_epoch=controller_epoch,
            lease_s=self._settings.executor_lease_s,
            steady=clock.steady,
            log_patterns=self._catalog.log_patterns,
        )
        cordons, self.shortages = self._observations.cordons, self._observations.shortages
        self._restore_nodes(snapshot)
        self._publisher = Publisher(self.state, self.quarantine)
        kinds = self._settings.kinds(self._wiring())
        self.state.kinds = {kind.name: kind for kind in kinds.jobs}
        self._requests = Requests(self.state, store, kinds.owners, self.quarantine, cordons)
        self._reconciler = Reconciler(self.state, (*kinds.jobs, *kinds.owners), self.quarantine)
        self._drains = Drains(self.state, self.quarantine)
        self._evictions = Evictions(self.state, self.quarantine, self.shortages, clock.steady)
        hopeless = Hopeless(self.state, self._settings.hopeless, self._away.places)
        limits = self._settings.round_limits
        self._placement = Placer(self.state, self._catalog, limits, self.quarantine, self.shortages, hopeless)
        self._looked_at = self._read_at = self._swept_at = float("-inf")
        self._mark: object = None
        """The store's change mark before the last check."""
        self._restore(snapshot, kinds)
        for active in self.state.active.values():
            for run in active.runs.values():
                self._observations.expect(run, restored=self._catalog.catalogue.paused is not None)

    def _restore_nodes(self, snapshot: Snapshot) -> None:
        nodes = self._store.nodes()
        self.state.nodes.update({(node.executor, node.name): node for node in nodes})
        self._observations.losses.restore(snapshot.losses)
        self._observations.cordons.restore(nodes)
        self.shortages.restore(nodes, self._clock.now())

    def _restore(self, snapshot: Snapshot, kinds: Kinds) -> None:
        now = self._clock.now()
        ours = in_our_time(snapshot, now)

        def each_of(kind: str) -> ForEach:
            return lambda key, call: self.quarantine.attempt_to_take_in(kind, key, now, call)

        for key, (name, error) in snapshot.unreadable.items():
            each_of(name)(key, partial(refuse, error))
        for key, error in strays(ours):
            each_of(UNREAD)(key, partial(refuse, error))
        self.state.restore(ours, each_of(UNREAD))
        for kind in (*kinds.owners, *kinds.jobs):
            kind.restore(ours, each_of(kind.name))
        for job in retried_sooner(ours, now):
            if job.id in self.state.jobs:
                each_of(UNREAD)(job.id, partial(self.state.put_job, job))
        self.quarantine.restore(snapshot.quarantined, now)

    def _wiring(self) -> Wiring:
        settings = self._settings
        lease_s = settings.executor_lease_s
        return Wiring(
            state=self.state,
            store=self._store,
            judging=PolicyJudge(
                self._catalog,
                self._observations.losses,
                self.shortages,
                self.state.capacity.places,
                self._dice.draw,
                self._away.places,
            ),
            pods=evolve(settings.pods, patience_s=(lease_s or 0.0) + KILL_ALLOWANCE_S),
            alive=self._observations.alive,
            lease_s=lease_s,
            gangs=Pace(settings.attempts_at_once, settings.attempts_per_tick),
            kube_jobs=Pace(settings.kube_jobs_per_tick, settings.kube_jobs_per_tick),
        )

    def tick(self, exchanges: Sequence[ExchangeRequest] = (), *, look: bool = False) -> Ticked:
        """Run one tick.

        Args:
            exchanges: Requests of executors.
            look: Whether to check for users' requests at once, after a hint.

        Raises:
            Uncertain: The commit may or may not have been made; this controller must not be used any more.
        """
        now = self._clock.now()
        self._patience.look(now)
        more = self._look(now) if look or now - self._looked_at >= self._settings.look_every_s else False
        believed = [exchange for exchange in exchanges if self._observations.take(exchange, now)]
        for exchange in believed:
            if exchange.pressure is not None or self._evictions.pressed:
                self._evictions.take(exchange, now)
        if now - self._swept_at >= self._settings.sweep_every_s:
            self._swept_at = now
            self._observations.lose_silent(now)
            self._observations.write_progress(now)
            self.shortages.look(now)
            if self._catalog.catalogue.cordons:
                self._drains.run(self._catalog.catalogue.cordons, now)
            self.state.schedule_needed = True
        self._reconciler.run(now)
        if self.state.schedule_needed:
            self.state.schedule_needed = False
            if self._settings.places:
                self._placement.run(now)
            self._reconciler.run_changed(now)
        self._requests.end_children(now)
        written = self.state.changes
        refused = self._commit()
        responses: dict[str, ExchangeResponse] = {}
        changed: frozenset[str] = frozenset()
        if refused is None:
            changed = self._publisher.publish(now)
            for exchange in believed:
                responses[exchange.executor] = self.answer(exchange)
        return Ticked(
            responses=responses,
            changed=changed,
            refused=refused,
            more=more or self.state.queue.has_more() or self.state.schedule_needed,
            next_due=self.state.queue.next_due(),
            written=Changes() if refused else written,
        )

    def has_news(self) -> bool:
        """Whether there may be new requests since the last check; cheap."""
        mark = self._store.mark()
        if mark is not None and mark == self._mark:
            return False
        news = self._store.news()
        if news.is_asked or news.catalogue_version != self._catalog.catalogue.version:
            return True
        self._mark = mark  # The change was this controller's own commit, or does not concern it.
        return False

    def answer(self, exchange: ExchangeRequest) -> ExchangeResponse:
        """Return what an executor should have, as of the last commit."""
        desired = self._publisher.published.get(exchange.executor, {})
        missed = self._observations.missed(exchange)
        if missed:
            desired = {uid: target for uid, target in desired.items() if uid not in missed}
        return ExchangeResponse(exchange.sequence, self._controller_epoch, desired)

    def _look(self, now: float) -> bool:
        """Read requests and the catalogue; returns whether there may be more."""
        self._looked_at, mark = now, self._store.mark()
        if mark is not None and mark == self._mark and now - self._read_at < self._settings.sweep_every_s:
            return False  # Nothing was written since. The catalogue is still read now and then, to find damage.
        self._read_at = now
        news = self._store.news()
        if news.catalogue_version != self._catalog.catalogue.version:
            self._catalog.read()
            self.state.schedule_needed, self.state.outbox.queue_notify = True, self._catalog.queue_notify
            self._swept_at = float("-inf")  # A node may have to be drained.
        if self.state.changes.handled:
            return False
        requests = self._store.requests(limit=self._settings.requests_per_tick) if news.is_asked else ()
        if requests:
            self._requests.take(requests, now)
        more = len(requests) == self._settings.requests_per_tick
        self._mark = None if more else mark
        return more

    def _group_of(self, job_id: str) -> str:
        job = self.state.changes.jobs.get(job_id) or self.state.jobs.get(job_id)
        return "" if job is None else job.group

    def _commit(self) -> Unavailable | None:
        changes = self.state.changes
        if not changes:
            return None
        changes.epoch = self._settings.epoch
        add_groups(changes.events, self._group_of)
        try:
            self._store.commit(changes)
        except Uncertain:
            raise  # Committing this again could write its events twice; the durable state is read anew instead.
        except Unavailable as error:
            return error
        self.state.changes = Changes()
        return None
