"""Fits the shape of a job onto nodes (first fit, gangs all or nothing), explains what does not fit, and counts use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.containers import UNKNOWN, Capability, EngineInfo
from holdfast.domain.devices import ANY, Device, GpuSelector
from holdfast.domain.job import UNLIMITED, Resources
from holdfast.domain.placement.assignment import (
    POD_IN_WORDS,
    DeviceLedger,
    DeviceShortage,
    all_free,
    all_well,
    gpus_in_words,
    named_in_words,
    runs_with_devices,
)
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.terms.resources import PODS
from holdfast.domain.units import format_amount, format_cpu, format_memory

if TYPE_CHECKING:
    from collections.abc import Collection, Container

    from holdfast.domain.job import Run
    from holdfast.domain.shortage import Short

PlaceKey = tuple[str, str]
"""(executor, node)."""
_MOST_TOLD = 5
Free = Mapping[PlaceKey, Mapping[str, int]]
"""Thousandths of each device, by place and id."""


class Shape(Struct, frozen=True):
    """Everything about a job that determines where it fits; equal shapes fit equally."""

    request: Resources = Resources()
    """Of each run."""
    gang: int = 1
    selector: tuple[tuple[str, str], ...] = ()
    """Labels a node must have."""
    avoid: str | None = None
    """Name of the node to stay away from."""
    needs: frozenset[Capability] = frozenset()
    """What the engine of a node must be capable of."""
    gpus: GpuSelector = ANY
    """Which GPUs are suitable."""
    avoid_devices: tuple[str, ...] = ()
    """``<id>@<node>`` of each GPU to stay away from."""
    avoid_nodes: frozenset[str] = frozenset()
    """Names of nodes that it must not use, because it was tried there."""

    @property
    def wants_gpus(self) -> bool:
        """Whether each run is to be given GPUs, or a share of one."""
        return self.request.gpu > 0 or self.request.share_m > 0


class Place(Struct, frozen=True):
    """A node as placement sees it."""

    key: PlaceKey
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    engine: EngineInfo = UNKNOWN
    devices: tuple[Device, ...] = ()
    """Its GPUs, where they are assigned individually."""
    short: Short | None = None
    """What it is short of, if anything."""

    def admits(self, shape: Shape) -> bool:
        """Whether engine, labels and anti-affinity allow the shape here, regardless of capacity.

        An engine that places runs itself also judges labels and anti-affinity itself.
        """
        if shape.needs and not shape.needs <= self.engine.capabilities:
            return False
        if Capability.PLACEMENT in self.engine.capabilities:
            return True
        if self.key[1] == shape.avoid or self.key[1] in shape.avoid_nodes:
            return False
        return not shape.selector or all(self.labels.get(name) == value for name, value in shape.selector)


def on_nodes(shape: Shape, cluster: Container[str]) -> Shape:
    """Remove from a shape the named resources that are counted for the whole cluster."""
    named = tuple([amount for amount in shape.request.named if amount[0] not in cluster])
    return shape if named == shape.request.named else evolve(shape, request=evolve(shape.request, named=named))


def runs_that_fit(request: Resources, free: Resources, most: int) -> int:
    """Count how many equal runs fit into what is free, up to ``most``."""
    count = most
    for need, have in (
        (request.cpu_m, free.cpu_m),
        (request.memory, free.memory),
        (request.gpu * 1000 + request.share_m, free.gpu * 1000 + free.share_m),
    ):
        if need > 0:
            count = min(count, max(0, have) // need)
    for name, amount in request.named:
        count = min(count, max(0, free.amount_of(name)) // amount)
    return count


def fit(
    shape: Shape,
    places: Sequence[Place],
    free: Mapping[PlaceKey, Resources],
    devices: Free | None = None,
    start: int = 0,
) -> list[PlaceKey] | None:
    """Place every rank of a shape, first fit in the order of ``places`` from index ``start``.

    Args:
        shape: What is placed.
        places: The candidates.
        free: What is free there.
        devices: What is free of GPUs that are assigned individually; all of them by default.
        start: The index of the first place that may have room.

    Returns:
        One place per rank, or ``None`` if not all ranks fit.
    """
    chosen: list[PlaceKey] = []
    for index in range(start, len(places)):
        place = places[index]
        room = free.get(place.key)
        if room is None or not place.admits(shape):
            continue
        count = runs_that_fit(shape.request, room, shape.gang - len(chosen))
        if count and place.devices and shape.wants_gpus:
            count = _with_devices(place, shape, devices, count)
        chosen.extend([place.key] * count)
        if len(chosen) == shape.gang:
            return chosen
    return None


def _with_devices(place: Place, shape: Shape, devices: Free | None, most: int) -> int:
    """Count how many ranks of a shape can be given devices of a place, up to ``most``."""
    unused = all_free(place.devices) if devices is None else devices.get(place.key, {})
    if shape.avoid_devices:
        unused = without_avoided(shape, place.key, unused)
    return runs_with_devices(place.devices, unused, shape.request, shape.gpus, most)


def without_avoided(shape: Shape, key: PlaceKey, free: Mapping[str, int]) -> dict[str, int]:
    """Remove the devices that a shape avoids from what is free on a node."""
    return {device: amount for device, amount in free.items() if f"{device}@{key[1]}" not in shape.avoid_devices}


def _ranks_at(place: Place, shape: Shape, room: Resources, devices: Free | None) -> int:
    count = runs_that_fit(shape.request, room, shape.gang)
    return _with_devices(place, shape, devices, count) if place.devices and shape.wants_gpus else count


def ever_fits(shape: Shape, places: Sequence[Place]) -> bool:
    """Whether the shape would fit if nothing else ran."""
    return fit(shape, places, {place.key: place.capacity for place in places}) is not None


def fit_alone(shape: Shape, places: Sequence[Place]) -> list[PlaceKey] | None:
    """Place every rank of a shape as if nothing else ran, without devices in trouble."""
    well = {place.key: all_well(place.devices) for place in places if place.devices} if shape.wants_gpus else None
    return fit(shape, places, {place.key: place.capacity for place in places}, well)


def without_hopeless_avoidance(shape: Shape, places: Sequence[Place]) -> Shape:
    """Drop the anti-affinity if no other node or device could ever take the shape."""
    if (shape.avoid is None and not shape.avoid_devices) or fit_alone(shape, places) is not None:
        return shape
    anywhere = evolve(shape, avoid=None)
    if shape.avoid_devices and fit_alone(anywhere, places) is None:
        return evolve(anywhere, avoid_devices=())
    return anywhere


def tried_in_words(nodes: Collection[str]) -> str:
    """Return ``it was tried on n1, n2``."""
    first = sorted(nodes)[:_MOST_TOLD]
    more = f" and {len(nodes) - len(first)} more" if len(nodes) > len(first) else ""
    return f"it was tried on {', '.join(first)}{more}"


Users = Mapping[tuple[PlaceKey, str], Sequence[str]]
"""The names of the jobs that use a device, by its place and id."""


def why_not(
    shape: Shape,
    places: Sequence[Place],
    free: Mapping[PlaceKey, Resources],
    devices: Free | None = None,
    users: Users | None = None,
) -> str:
    """Say in one line why a shape does not fit now, with the numbers a person needs."""
    if not places:
        return "no executor has reported a node yet"
    reason = _why_not(shape, places, free, devices, users)
    tried = {place.key[1] for place in places} & shape.avoid_nodes
    return f"{reason}; {tried_in_words(tried)}" if tried else reason


def _why_not(
    shape: Shape,
    places: Sequence[Place],
    free: Mapping[PlaceKey, Resources],
    devices: Free | None,
    users: Users | None,
) -> str:
    admitted = [place for place in places if place.admits(shape)]
    if not admitted:
        return _why_none_admits(shape, places)
    short = _shortest(shape.request, [place.capacity for place in admitted])
    if short:
        larger = f", the largest node has {short[1]}" if short[1] else ""
        return f"needs {short[0]}{larger}: no node could ever take it"
    if shape.wants_gpus and (short_of := _short_of_devices(shape, admitted, free, devices, users or {})):
        return short_of
    if not ever_fits(shape, places):
        return f"needs {_amount(shape)}, all nodes together could never hold it"
    return _short_now(shape, admitted, free, devices)


def _short_now(shape: Shape, places: Sequence[Place], free: Mapping[PlaceKey, Resources], devices: Free | None) -> str:
    """Say what is short now, because other jobs use it."""
    short = _shortest(shape.request, [free[place.key] for place in places if place.key in free])
    if short and short[0] == POD_IN_WORDS:
        most = max(place.capacity.amount_of(PODS) for place in places)
        return f"no node has room for one more pod: each takes {format_amount(most)} at most"
    if short:
        larger = f"the largest free node has {short[1]}" if short[1] else "no node has all of that free"
        return f"needs {short[0]}, {larger}"
    ranks = sum(_ranks_at(place, shape, free[place.key], devices) for place in places if place.key in free)
    return f"needs {_amount(shape)}, the free nodes hold {ranks} of {shape.gang}"


def _short_of_devices(
    shape: Shape, places: Sequence[Place], free: Mapping[PlaceKey, Resources], devices: Free | None, users: Users
) -> str:
    """Say which GPUs are missing, if only GPUs are, and they are assigned individually."""
    roomy = [place for place in places if place.key in free and _without_gpus(shape.request).fits(free[place.key])]
    free_devices = {place.key: all_free(place.devices) for place in places} if devices is None else devices
    if not any(place.devices for place in roomy) or fit(evolve(shape, gang=1), roomy, free, free_devices) is not None:
        return ""
    having = [(place.key, place.devices) for place in roomy]
    return DeviceShortage(having, free_devices, users, shape.avoid_devices).why(shape.request, shape.gpus)


def _without_gpus(request: Resources) -> Resources:
    return evolve(request, gpu=0, share_m=0)


def _why_none_admits(shape: Shape, places: Sequence[Place]) -> str:
    """Say what keeps a shape off every node: the engine, labels, or nodes that it avoids."""
    if shape.needs and not any(shape.needs <= place.engine.capabilities for place in places):
        return f"no node has an engine capable of {', '.join(sorted(shape.needs))}"
    missing = [label for label in shape.selector if all(place.labels.get(label[0]) != label[1] for place in places)]
    labels = ", ".join(f"{name}={value}" for name, value in missing or shape.selector)
    if missing:
        return f"no node has the {'label' if len(missing) == 1 else 'labels'} {labels}"
    if any(place.admits(evolve(shape, avoid=None)) for place in places):
        return f"no node but {shape.avoid}, which it avoids"
    if any(place.admits(evolve(shape, avoid=None, avoid_nodes=frozenset())) for place in places):
        return "no untried node will do"
    return f"no node has all of the labels {labels}"


def _amount(shape: Shape) -> str:
    request = shape.request
    parts = [f"{format_cpu(request.cpu_m)} cpu"] if request.cpu_m else []
    parts += [f"{format_memory(request.memory)} memory"] if request.memory else []
    parts += [f"{gpus_in_words(request)}{shape.gpus}"] if shape.wants_gpus else []
    parts += [named_in_words(name, amount) for name, amount in request.named]
    per_run = " and ".join(parts) or "a place"
    return f"{shape.gang} x ({per_run})" if shape.gang > 1 else per_run


def _shortest(request: Resources, offers: Sequence[Resources]) -> tuple[str, str] | None:
    """Name the first dimension in which no offer is large enough, and the largest offer; or all dimensions together."""
    most_cpu = max((offer.cpu_m for offer in offers), default=0)
    if request.cpu_m > most_cpu:
        return f"{format_cpu(request.cpu_m)} cpu", format_cpu(max(0, most_cpu))
    most_memory = max((offer.memory for offer in offers), default=0)
    if request.memory > most_memory:
        return f"{format_memory(request.memory)} memory", format_memory(max(0, most_memory))
    most_gpus = max((offer.gpus for offer in offers), default=0.0)
    if request.gpus > most_gpus:
        return gpus_in_words(request), f"{max(0.0, most_gpus):g}"
    for name, amount in request.named:
        most = max((offer.amount_of(name) for offer in offers), default=0)
        if amount > most:
            return named_in_words(name, amount), format_amount(max(0, most))
    if not any(request.fits(offer) for offer in offers):
        return _amount(Shape(request)), ""
    return None


class Usage(Struct, gc=True):
    """What a queue or a user uses now."""

    resources: Resources = Resources(0)
    jobs: int = 0


class Capacity:
    """Capacity by place and usage by queue, derived from the runs that are charged.

    A run is charged from being placed until it is confirmed stopped. Charging and releasing are idempotent by run uid,
    so a repeated report cannot leak capacity.
    """

    def __init__(self) -> None:
        self.places: dict[PlaceKey, Place] = {}
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        """By queue."""
        self.total = Resources(0)
        """Capacity of all places together, without unlimited ones."""
        self._whole: dict[str, PlaceKey] = {}
        """The only place of each executor whose engine chooses nodes; its runs are reported on the nodes it chose."""
        self.free: dict[PlaceKey, Resources] = {}
        """What is free now, by place."""
        self.charges: dict[str, tuple[PlaceKey, Resources, str, str]] = {}
        """The place, request, queue and user each run is charged to, by its uid."""
        self.devices = DeviceLedger()
        self.grants: Mapping[str, tuple[tuple[str, ...], ...]] = {}
        """The devices granted in the last round, by placement id and rank."""

    def set_place(self, place: Place) -> bool:
        """Add a place or change it; returns whether anything changed."""
        before = self.places.get(place.key)
        if before == place:
            return False
        self.places[place.key] = place
        self.total += _counted(place) - _counted(before)
        if Capability.PLACEMENT in place.engine.capabilities:
            self._whole[place.key[0]] = place.key
        used = Resources(0)
        for key, amount, _, _ in self.charges.values():
            if self._whole.get(key[0], key) == place.key:
                used += amount
        self.free[place.key] = place.capacity - used
        if place.devices or place.key in self.devices.free:
            self.devices.set_place(place.key, place.devices)
        return True

    def home(self, executor: str, node: str) -> PlaceKey:
        """Return the place of runs on a node: the executor's only place if its engine chooses nodes."""
        return self._whole.get(executor, (executor, node))

    def drop_places(self, executor: str, *, but: Collection[str] = ()) -> None:
        """Forget the places of an executor that is lost, or those it no longer has; runs there stay charged."""
        for key in [key for key in self.places if key[0] == executor and key[1] not in but]:
            self.total -= _counted(self.places.pop(key))
            self.free.pop(key, None)
            self.devices.drop_place(key)

    def grant(self, devices: Mapping[str, tuple[tuple[str, ...], ...]]) -> None:
        """Keep the devices for the runs that are created next, by placement id and rank."""
        self.grants = devices

    def charge(self, run: Run, queue: str, user: str = "") -> None:
        """Charge a run to its place."""
        if run.uid in self.charges:
            return
        key = (run.executor, run.node)
        self.charges[run.uid] = (key, run.request, queue, user)
        self.usage[queue].resources += run.request
        home = self._whole.get(key[0], key)
        if home in self.free:
            self.free[home] -= run.request
        if run.devices:
            self.devices.charge(run)

    def release(self, uid: str) -> bool:
        """Release a run's capacity; returns whether it was charged."""
        charge = self.charges.pop(uid, None)
        if charge is None:
            return False
        key, amount, queue, _ = charge
        home = self._whole.get(key[0], key)
        if home in self.free:
            self.free[home] += amount
        self.usage[queue].resources -= amount
        if uid in self.devices.held:
            self.devices.release(uid)
        return True


def _counted(place: Place | None) -> Resources:
    return Resources(0) if place is None or place.capacity == UNLIMITED else place.capacity
