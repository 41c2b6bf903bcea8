"""Plans one round: which waiting jobs start now, and where.

The queue with the smallest weighted share goes first, then the highest priority, then the order of submission, with
retries ahead of new jobs within their share. Nodes are kept free for a job that has waited too long.

Waiting jobs are grouped so that the work of a round does not grow with their number: a queue's jobs of equal shape
share a group, which is tried once per round.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from holdfast.domain.job import Ceiling, Queue, Resources
from holdfast.domain.placement.assignment import choose_devices, named_in_words, take_devices
from holdfast.domain.placement.fit import (
    Place,
    PlaceKey,
    Usage,
    Users,
    fit,
    fit_alone,
    on_nodes,
    why_not,
    without_avoided,
    without_hopeless_avoidance,
)
from holdfast.domain.record import Struct, field
from holdfast.domain.terms.resources import PODS
from holdfast.domain.units import format_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.job import UserLimits
    from holdfast.domain.placement.fit import Shape


class GroupKey(NamedTuple):
    """What the waiting jobs of a group have in common."""

    queue: str
    shape: Shape
    retry: bool
    """Whether they have run before."""
    user: str | None = None
    """Their user, in a queue that limits what each user runs."""
    of_door: bool = False
    """Whether they were submitted by another system's door."""


class Waiting(NamedTuple):
    """One waiting job; sorts by its turn within its group."""

    turn: int
    """Negated priority: higher priorities first."""
    seq: int
    """Order of submission, kept over retries."""
    job_id: str
    since: float
    """When it became ready to be placed."""
    pod: bool = False
    """Whether it is one pod, identified by its placement id, rather than a job."""
    user: str = ""
    """Its user."""


class _Entry(Struct, gc=True):
    key: GroupKey
    waiting: Waiting


class PendingQueue:
    """A mutable index of waiting jobs; adding and removing cost O(log n), looking at heads O(groups)."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._heaps: dict[GroupKey, list[Waiting]] = {}
        self._per_user: Collection[str] = ()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entries

    def add(self, key: GroupKey, waiting: Waiting) -> None:
        """Add a job, or move it if it waits already."""
        if key.queue in self._per_user:
            key = key._replace(user=waiting.user)
        self._entries[waiting.job_id] = _Entry(key, waiting)
        heapq.heappush(self._heaps.setdefault(key, []), waiting)

    def tell_users_apart(self, queues: Collection[str]) -> None:
        """Group waiting jobs by their user as well in these queues, and in no others."""
        changed, self._per_user = {*queues}.symmetric_difference(self._per_user), queues
        for key, waiting in [
            (entry.key, entry.waiting) for entry in self._entries.values() if entry.key.queue in changed
        ]:
            # A copy: with the same object, both groups would have it at their heads.
            self.add(key._replace(user=None), waiting._replace())

    def remove(self, job_id: str) -> None:
        """Remove a job, if it waits."""
        self._entries.pop(job_id, None)

    def head(self, key: GroupKey) -> Waiting | None:
        """Return the job whose turn it is in a group, or ``None`` if none waits."""
        heap = self._heaps.get(key)
        while heap:
            first = heap[0]
            entry = self._entries.get(first.job_id)
            if entry is not None and entry.waiting is first:
                return first
            heapq.heappop(heap)
        self._heaps.pop(key, None)
        return None

    def of_group(self, key: GroupKey) -> list[Waiting]:
        """List the jobs that wait in a group, in no particular order."""
        heap = self._heaps.get(key, ())
        return [
            waiting for waiting in heap if (entry := self._entries.get(waiting.job_id)) and entry.waiting is waiting
        ]

    def groups(self) -> list[GroupKey]:
        """List the groups in which jobs may wait, in no particular order."""
        return list(self._heaps)


_Rank: TypeAlias = tuple[int, bool, int, str, GroupKey]
"""Turn, not retried, order of submission, placement id; pods of a job share the first three, and groups do not sort."""
_NOTHING = Resources(-1, -1, -1)


class RoundLimits(Struct, frozen=True):
    """How much one round does and how it treats starving jobs."""

    most_placements: int = 1_000
    most_pods: int = 5_000
    """This many single pods weigh as much as ``most_placements`` jobs: opening an attempt is most of the work."""
    reserve_after_s: float = 30.0
    """A job that fits an empty cluster and has waited longer gets nodes kept free for it."""


class RetryBalance(Struct, gc=True):
    """Capacity given to retries and to new jobs while both wait; kept between rounds."""

    retried_m: float = 0.0
    fresh_m: float = 0.0

    def add(self, shape: Shape, *, retry: bool) -> None:
        """Count the capacity given to a retry or a new job."""
        amount = max(1.0, float(shape.request.cpu_m * shape.gang))
        if retry:
            self.retried_m += amount
        else:
            self.fresh_m += amount


class Placement(Struct, frozen=True):
    """A job that starts now, with the place of each rank."""

    job_id: str
    places: tuple[PlaceKey, ...]
    devices: tuple[tuple[str, ...], ...] = ()
    """The GPUs of each rank; empty where GPUs are only counted, or not requested."""


class Blocked(Struct, frozen=True):
    """The first job of a group that could not start, with the reason."""

    waiting: Waiting
    key: GroupKey
    reason: str


class RoundResult(Struct, gc=True):
    """The result of a round."""

    placements: list[Placement] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    cut_short: bool = False
    """Whether it stopped at its limits, so that more may be placed."""


class Round(Struct, gc=True):
    """One round of placement; ``plan`` runs it."""

    pending: PendingQueue
    places: Sequence[Place]
    free: dict[PlaceKey, Resources]
    queues: Mapping[str, Queue]
    usage: dict[str, Usage]
    balances: dict[tuple[str, int], RetryBalance]
    now: float
    total: Resources
    """Capacity of all places together."""
    retry_share: float
    """The largest share of capacity that goes to retries while new jobs of that queue and priority wait; 0 to 1."""
    limits: RoundLimits = RoundLimits()
    devices: dict[PlaceKey, dict[str, int]] = field(default_factory=dict)
    """What is free of GPUs that are assigned individually."""
    cluster: dict[str, int] = field(default_factory=dict)
    """What is free of the whole cluster's named resources, in thousandths."""
    tried: set[PlaceKey] = field(default_factory=set)
    """Places that get only one job in this round, to see whether it starts there."""
    refusal: str = ""
    """Why no job may start; empty if jobs may."""
    by_user: dict[tuple[str, str], Usage] = field(default_factory=dict)
    """What each user uses, by queue and name, in queues that limit it."""
    users: Callable[[Waiting, Sequence[Placement]], Users] = lambda _waiting, _placed: {}
    """Returns the users of devices that are not free, as a waiting job may see them, given this round's placements."""
    _heaps: dict[str, list[_Rank]] = field(default_factory=dict)
    _reserved: bool = False
    _first_room: dict[Resources, int] = field(default_factory=dict)
    """By request, the index of the first place that may still have room: what is free only shrinks within a round."""

    def plan(self) -> RoundResult:
        """Place jobs until nothing more fits, updating the queue and the round's free capacity and usage."""
        plan = RoundResult()
        for key in self.pending.groups():
            self._line_up(key)
        if self.balances:
            for queue, heap in self._heaps.items():
                self._forget_balances(queue, heap)
        jobs, pods = self.limits.most_placements, self.limits.most_pods
        left = jobs * pods  # a job takes ``pods`` of it, a pod ``jobs``
        while self._heaps and left > 0:
            queue = next(iter(self._heaps)) if len(self._heaps) == 1 else min(self._heaps, key=self._share)
            placed = self._try(self._next_group(queue), plan)
            if placed is not None:
                left -= jobs if placed.pod else pods
            if not self._heaps[queue]:
                del self._heaps[queue]
        plan.cut_short = left <= 0
        return plan

    def _line_up(self, key: GroupKey) -> None:
        """Put the head of a group in line in its queue."""
        head = self.pending.head(key)
        if head is not None:
            rank = (head.turn, not key.retry, head.seq, head.job_id, key)
            heapq.heappush(self._heaps.setdefault(key.queue, []), rank)

    def _forget_balances(self, queue: str, heap: list[_Rank]) -> None:
        """Forget the balance of a priority where retries and new jobs no longer both wait."""
        retried, fresh = ({rank[0] for rank in heap if rank[-1].retry is kind} for kind in (True, False))
        for key in [key for key in self.balances if key[0] == queue and key[1] not in retried & fresh]:
            del self.balances[key]

    def _share(self, queue: str) -> tuple[float, str]:
        """Return the queue's weighted dominant share of the capacity; ties are broken by name."""
        total, pods = self.total, self.total.amount_of(PODS)
        used = self.usage.setdefault(queue, Usage()).resources
        shares = (
            used.cpu_m / total.cpu_m if total.cpu_m else 0.0,
            used.memory / total.memory if total.memory else 0.0,
            (used.gpu + used.share_m / 1000) / total.gpu if total.gpu else 0.0,
            used.amount_of(PODS) / pods if pods else 0.0,
        )
        weight = self.queues[queue].weight if queue in self.queues else 1.0
        return max(shares) / weight, queue

    def _next_group(self, queue: str) -> GroupKey:
        """Pop the group whose head goes next, respecting the retries' share."""
        heap = self._heaps[queue]
        first = heapq.heappop(heap)
        if not heap or not first[-1].retry:
            return first[-1]
        rival = min((other for other in heap if other[0] == first[0] and not other[-1].retry), default=None)
        if rival is None:
            return first[-1]
        balance = self.balances.setdefault((queue, first[0]), RetryBalance())
        share = self.retry_share
        if share and balance.retried_m * (1 - share) <= balance.fresh_m * share:
            return first[-1]
        heap.remove(rival)
        heap.append(first)
        heapq.heapify(heap)
        return rival[-1]

    def _try(self, key: GroupKey, plan: RoundResult) -> Waiting | None:
        """Place the head of a group; returns it if it was placed."""
        head = self.pending.head(key)
        if head is None:
            return None
        original = shape = key.shape
        if original.request.named:
            shape = on_nodes(original, self.cluster)
        if shape.avoid is not None or shape.avoid_devices:
            shape = without_hopeless_avoidance(shape, self.places)
        reason = self._queue_refuses(key, original) or (self._cluster_lacks(original) if original.request.named else "")
        chosen = (
            None if reason else fit(shape, self.places, self.free, self.devices, self._first_candidate(shape.request))
        )
        if chosen is None:
            plan.blocked.append(Blocked(head, key, reason or self._why_not(shape, plan, head)))
            if not reason:
                self._maybe_reserve(shape, head)
            return None
        for place in chosen:
            self.free[place] -= shape.request
        for place in self.tried.intersection(chosen):
            self.free.pop(place)
        self._count(key, original.request if original.gang == 1 else _whole(original))
        if original.request.named:
            self._take_of_the_cluster(original)
        balance = self.balances.get((key.queue, head.turn))
        if balance is not None:
            balance.add(shape, retry=key.retry)
        self.pending.remove(head.job_id)
        granted = self._grant(shape, chosen) if self.devices and shape.wants_gpus else ()
        plan.placements.append(Placement(head.job_id, tuple(chosen), granted))
        self._line_up(key)
        return head

    def _count(self, key: GroupKey, amount: Resources) -> None:
        """Count a job against the limits of its queue and of its user there."""
        usage = self.usage.setdefault(key.queue, Usage())
        for used in (usage,) if key.user is None else (usage, self._used_by(key.queue, key.user)):
            used.resources += amount
            used.jobs += 1

    def _cluster_lacks(self, shape: Shape) -> str:
        """Say which of the whole cluster's resources is short, if any."""
        for name, amount in shape.request.named:
            need, free = amount * shape.gang, self.cluster.get(name)
            if free is not None and need > free:
                return f"needs {named_in_words(name, need)}, {format_amount(max(0, free))} of the cluster's are free"
        return ""

    def _take_of_the_cluster(self, shape: Shape) -> None:
        for name, amount in shape.request.named:
            if name in self.cluster:
                self.cluster[name] -= amount * shape.gang

    def _grant(self, shape: Shape, chosen: Sequence[PlaceKey]) -> tuple[tuple[str, ...], ...]:
        """Assign devices to each rank on the place chosen for it."""
        places = {place.key: place for place in self.places}
        granted = []
        for key in chosen:
            free, devices = self.devices.get(key), None
            if free is not None:
                allowed = without_avoided(shape, key, free) if shape.avoid_devices else free
                devices = choose_devices(places[key].devices, allowed, shape.request, shape.gpus) or ()
                take_devices(free, devices, shape.request)
            granted.append(devices or ())
        return tuple(granted)

    def _why_not(self, shape: Shape, plan: RoundResult, head: Waiting) -> str:
        if not self.devices or not shape.wants_gpus:
            return why_not(shape, self.places, self.free)
        return why_not(shape, self.places, self.free, self.devices, self.users(head, plan.placements))

    def _first_candidate(self, request: Resources) -> int:
        index, places = self._first_room.get(request, 0), self.places
        while index < len(places) and not request.fits(self.free.get(places[index].key, _NOTHING)):
            index += 1
        self._first_room[request] = index
        return index

    def _queue_refuses(self, key: GroupKey, shape: Shape) -> str:
        if self.refusal:
            return self.refusal
        name, user = key.queue, key.user
        queue = self.queues.get(name)
        if queue is None:
            return ""
        if queue.paused:
            return f"queue {name} is paused"
        if limit := _limit_reached(queue, self.usage.setdefault(name, Usage()), shape):
            return f"queue {name} is at its {limit}"
        limit = "" if user is None else _limit_reached(queue.per_user, self._used_by(name, user), shape)
        return f"{user or 'nobody'} is at the per-user {limit} of queue {name}" if limit else ""

    def _used_by(self, queue: str, user: str) -> Usage:
        return self.by_user.setdefault((queue, user), Usage())

    def _maybe_reserve(self, shape: Shape, head: Waiting) -> None:
        """Reserve nodes for the first job that has waited too long; later jobs can use what is left there."""
        starving = self.now - head.since >= self.limits.reserve_after_s
        if self._reserved or not starving or fit_alone(shape, self.places) is None:
            return
        self._reserved = True
        roomiest = sorted(self.places, key=lambda place: self.free.get(place.key, Resources(0)), reverse=True)
        for key in fit_alone(shape, roomiest) or ():
            if key in self.free:
                self.free[key] = self.free[key].beside(shape.request)


_NO_CEILING = Ceiling()


def _whole(shape: Shape) -> Resources:
    """Return the sum of the requests of all ranks."""
    request, gang = shape.request, shape.gang
    named = tuple([(name, amount * gang) for name, amount in request.named]) if request.named else ()
    return Resources(request.cpu_m * gang, request.memory * gang, request.gpu * gang, request.share_m * gang, named)


def _limit_reached(limits: Queue | UserLimits, usage: Usage, shape: Shape) -> str:
    """Name the limit that one more job would exceed, if any.

    Args:
        limits: The limits of a queue, or of each user in it.
        usage: What all jobs there use, or those of the user.
        shape: What the job requests.
    """
    most_jobs, ceiling = limits.max_running_jobs, limits.max_running
    if most_jobs is not None and usage.jobs >= most_jobs:
        return f"limit of {most_jobs} running jobs"
    if ceiling == _NO_CEILING:
        return ""
    after = usage.resources + _whole(shape)
    for dimension, used in (("cpu_m", after.cpu_m), ("memory", after.memory), ("gpu", after.gpus)):
        most = getattr(ceiling, dimension)
        if most is not None and used > most:
            return f"{dimension.removesuffix('_m')} limit"
    full = (name for name, most in ceiling.named if after.amount_of(name) > most)
    return next((f"{name} limit" for name in full), "")
