"""Plans which waiting work gets which place, and records why the rest waits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Sight
from holdfast.domain.job import job_of
from holdfast.domain.placement.cordon import with_closed_nodes
from holdfast.domain.placement.fit import Usage
from holdfast.domain.placement.scheduling import Round, RoundLimits
from holdfast.domain.rights import ANOTHERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.controller.hopeless import Hopeless
    from holdfast.controller.nodes.shortages import Shortages
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Amounts, Job, Queue
    from holdfast.domain.placement.fit import Place, PlaceKey
    from holdfast.domain.placement.scheduling import Blocked, Placement, Waiting


class Placer:
    """Assigns places to waiting jobs and pods."""

    def __init__(
        self,
        state: ControllerState,
        catalog: PolicyCatalog,
        limits: RoundLimits,
        quarantine: Quarantine,
        shortages: Shortages,
        hopeless: Hopeless,
    ) -> None:
        """``queues`` and the limits of a round come from the catalogue and the settings."""
        self._hopeless = hopeless
        self._queues: Mapping[str, Queue] = {}
        self._limited: Collection[str] = ()
        """Queues with limits per user."""
        self._shortages = shortages
        self._state = state
        self._catalog = catalog
        self._limits = limits
        self._quarantine = quarantine

    def run(self, now: float) -> None:
        """Plan a round, and have each kind start its workloads on their places."""
        state, settings, pause = self._state, self._catalog.catalogue.settings, self._catalog.catalogue.paused
        has = settings.resources
        self._tell_users_apart()
        every, cordons = list(state.capacity.places.values()), self._catalog.catalogue.cordons
        short = {place.key: place.short for place in every if place.short is not None}
        closed = [cordon.in_words() for cordon in cordons.values()]
        closed += [lack.in_words(key[1]) for key, lack in short.items()]
        opened = every
        if closed:
            opened = [place for place in every if place.key[1] not in cordons and _gets_work(place, now)]
        plan = Round(
            pending=state.pending,
            places=opened,
            free=dict(state.capacity.free),
            queues=self._queues,
            usage={name: Usage(used.resources, used.jobs) for name, used in state.capacity.usage.items()},
            balances=state.balances,
            now=now,
            total=state.capacity.total,
            retry_share=settings.retry_share,
            limits=self._limits,
            devices=state.capacity.devices.to_give() if state.capacity.devices.free else {},
            cluster=self._of_the_cluster(has) if has else {},
            tried=set(short),
            refusal="" if pause is None else pause.in_words(),
            users=self._users,
            by_user=self._by_user(),
        ).plan()
        state.schedule_needed = plan.cut_short
        if short:
            self._shortages.tried((place for lack in plan.placements for place in lack.places), now)
        by_kind: dict[str, dict[str, tuple[PlaceKey, ...]]] = {}
        if state.capacity.devices.free:
            state.capacity.grant({placed.job_id: placed.devices for placed in plan.placements if placed.devices})
        for placed in plan.placements:
            job = state.jobs.get(state.owner.get(placed.job_id, placed.job_id))
            if job is not None:
                by_kind.setdefault(job.kind, {})[placed.job_id] = placed.places
        for kind, places in by_kind.items():
            call = partial(state.kinds[kind].placed, places)
            self._quarantine.attempt_all(kind, places, now, "giving it a place", call)
        for blocked in plan.blocked:
            waiting, reason = blocked.waiting.job_id, blocked.reason
            job_id = state.owner.get(waiting, waiting)
            if closed and pause is None:
                reason = with_closed_nodes(reason, closed, any_left=any(place.short is None for place in opened))
            if state.note_reason(job_id, reason, now):
                kind = state.jobs[job_id].kind
                note = partial(state.kinds[kind].blocked, waiting, now)
                self._quarantine.attempt(kind, job_id, now, "noting why it waits", note)
        self._give_up(() if pause else plan.blocked, every, has, now)

    def _give_up(self, blocked: Sequence[Blocked], places: Sequence[Place], cluster: Amounts, now: float) -> None:
        """Fail the attempts of jobs that have fitted no node for long enough."""
        if not blocked and not self._hopeless.since:
            return
        for waiting, why in self._hopeless.over(blocked, places, dict(cluster), now):
            job_id = self._state.owner.get(waiting, waiting)
            kind = self._state.jobs[job_id].kind
            give_up = partial(self._state.kinds[kind].blocked, waiting, now, never=why)
            self._quarantine.attempt(kind, job_id, now, "giving up to place it", give_up)

    def _of_the_cluster(self, has: Amounts) -> dict[str, int]:
        """Return the free amounts of cluster-wide resources."""
        free = dict(has)
        for used in self._state.capacity.usage.values():
            for name, amount in used.resources.named:
                if name in free:
                    free[name] -= amount
        return free

    def _tell_users_apart(self) -> None:
        """In queues with limits per user, group waiting work by user."""
        queues = self._catalog.catalogue.queues
        if queues is not self._queues:
            self._queues = queues
            self._limited = {name for name, queue in queues.items() if queue.per_user.of_running}
            self._state.pending.tell_users_apart(self._limited)

    def _by_user(self) -> dict[tuple[str, str], Usage]:
        """Sum up what each user of such queues uses, if any of their jobs waits."""
        state, usages = self._state, dict[tuple[str, str], Usage]()
        queues = {key.queue for key in state.pending.groups() if key.user is not None} if self._limited else ()
        if not queues:
            return usages
        of: dict[str, tuple[str, str]] = {}
        for uid, (_, amount, queue, user) in state.capacity.charges.items():
            if queue in queues:
                of[job_of(uid)] = (queue, user)
                usages.setdefault((queue, user), Usage()).resources += amount
        for job_id, active in state.active.items():
            job = active.job
            if job.queue in queues:
                usages.setdefault((job.queue, job.submitted_by), Usage()).jobs += active.counts_for
                of.pop(job_id, None)
        for key in of.values():  # Includes jobs that are quarantined and still run.
            usages[key].jobs += 1
        return usages

    def _users(self, waiting: Waiting, placed: Sequence[Placement]) -> dict[tuple[PlaceKey, str], list[str]]:
        """Name the jobs that hold devices, by place and device, as far as a waiting job's owner may know."""
        is_known = self._known_to(self._job(waiting.job_id))
        users: dict[tuple[PlaceKey, str], list[str]] = {}
        for uid, (place, devices, _) in self._state.capacity.devices.held.items():
            for device in devices:
                users.setdefault((place, device), []).append(self._name(uid.partition("/")[0], is_known))
        for placement in placed:
            for place, devices in zip(placement.places, placement.devices, strict=False):
                for device in devices:
                    users.setdefault((place, device), []).append(self._name(placement.job_id, is_known))
        return users

    def _job(self, key: str) -> Job | None:
        """Find a job by its id, or by the id of one of its runs or placements."""
        return self._state.jobs.get(self._state.owner.get(key, key))

    def _name(self, key: str, is_known: Callable[[Job | None], bool]) -> str:
        job = self._job(key)
        if not is_known(job):
            return ANOTHERS
        return key if job is None else job.name

    def _known_to(self, waiting: Job | None) -> Callable[[Job | None], bool]:
        """Return which other jobs may be named to everybody who sees why a job waits."""
        catalogue = self._catalog.catalogue
        if catalogue.access.others_see in {None, Sight.DETAILS, Sight.EVERYTHING}:
            return lambda _: True
        if waiting is None:
            return lambda _: False
        owner, queue = (waiting.submitted_by, waiting.submitter_uid), catalogue.queues.get(waiting.queue)
        alone = queue is None or not queue.permissions  # With permissions, others may see this queue.
        return lambda job: (
            job is not None and (job.submitted_by, job.submitter_uid) == owner and (alone or job.queue == waiting.queue)
        )


def _gets_work(place: Place, now: float) -> bool:
    return place.short is None or place.short.admits_one(now)
