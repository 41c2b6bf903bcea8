"""Fits one shape of job onto nodes: first fit, gangs all or nothing; explains why when nothing fits; counts use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.domain.containers import UNKNOWN, Capability, EngineInfo
from holdfast.domain.job import UNLIMITED, Resources
from holdfast.domain.units import format_cpu, format_memory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.job import Run

PlaceKey = tuple[str, str]
"""(executor, node)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything about a job that decides where it fits; equal shapes fit equally."""

    request: Resources = Resources()
    """Of each run."""
    gang: int = 1
    selector: tuple[tuple[str, str], ...] = ()
    """Labels a node must have."""
    avoid: str | None = None
    """Name of the node to stay away from."""
    needs: frozenset[Capability] = frozenset()
    """What the engine of a node must be capable of."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node as placement sees it."""

    key: PlaceKey
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    engine: EngineInfo = UNKNOWN

    def admits(self, shape: Shape) -> bool:
        """Whether engine, labels and anti-affinity allow the shape here, whatever the capacity.

        Where the engine places runs itself, it looks at labels and anti-affinity, too.
        """
        if shape.needs and not shape.needs <= self.engine.capabilities:
            return False
        if Capability.PLACEMENT in self.engine.capabilities:
            return True
        if self.key[1] == shape.avoid:
            return False
        return not shape.selector or all(self.labels.get(name) == value for name, value in shape.selector)


def runs_that_fit(request: Resources, free: Resources, most: int) -> int:
    """Count how many equal runs fit into what is free, at most ``most``."""
    count = most
    for need, have in ((request.cpu_m, free.cpu_m), (request.memory, free.memory), (request.gpu, free.gpu)):
        if need > 0:
            count = min(count, max(0, have) // need)
    return count


def fit(
    shape: Shape, places: Sequence[Place], free: Mapping[PlaceKey, Resources], *, start: int = 0
) -> list[PlaceKey] | None:
    """Place every rank of a shape, first fit in the order of ``places`` from index ``start``.

    Returns:
        One place per rank, or ``None`` when not all of them fit.
    """
    chosen: list[PlaceKey] = []
    for index in range(start, len(places)):
        place = places[index]
        room = free.get(place.key)
        if room is None or not place.admits(shape):
            continue
        count = runs_that_fit(shape.request, room, shape.gang - len(chosen))
        chosen.extend([place.key] * count)
        if len(chosen) == shape.gang:
            return chosen
    return None


def ever_fits(shape: Shape, places: Sequence[Place]) -> bool:
    """Whether the shape would fit if nothing else ran."""
    return fit(shape, places, {place.key: place.capacity for place in places}) is not None


def without_hopeless_avoidance(shape: Shape, places: Sequence[Place]) -> Shape:
    """Drop the anti-affinity when no other node could ever take the shape (semantics 4)."""
    if shape.avoid is None or ever_fits(shape, places):
        return shape
    return replace(shape, avoid=None)


def why_not(shape: Shape, places: Sequence[Place], free: Mapping[PlaceKey, Resources]) -> str:
    """Say in one line why a shape does not fit now, with the numbers a person needs."""
    if not places:
        return "no executor has reported a node yet"
    admitted = [place for place in places if place.admits(shape)]
    if not admitted:
        return _nobody_admits(shape, places)
    short = _shortest(shape.request, [place.capacity for place in admitted])
    if short:
        return f"needs {short[0]}, the largest node has {short[1]}: no node could ever take it"
    if not ever_fits(shape, places):
        return f"needs {_amount(shape)}, all nodes together could never hold it"
    short = _shortest(shape.request, [free[place.key] for place in admitted if place.key in free])
    if short:
        return f"needs {short[0]}, the largest free node has {short[1]}"
    return f"needs {_amount(shape)}, the free nodes hold {_free_ranks(shape, admitted, free)} of {shape.gang}"


def _nobody_admits(shape: Shape, places: Sequence[Place]) -> str:
    """Name the labels that keep a shape off every node: those that none has, else all, which none has together."""
    if shape.needs and not any(shape.needs <= place.engine.capabilities for place in places):
        return f"no node has an engine capable of {', '.join(sorted(shape.needs))}"
    missing = [label for label in shape.selector if all(place.labels.get(label[0]) != label[1] for place in places)]
    told = ", ".join(f"{name}={value}" for name, value in missing or shape.selector)
    if missing:
        return f"no node has the {'label' if len(missing) == 1 else 'labels'} {told}"
    if any(place.admits(replace(shape, avoid=None)) for place in places):
        return f"no node but {shape.avoid}, which it avoids"
    return f"no node has all of the labels {told}"


def _amount(shape: Shape) -> str:
    request = shape.request
    parts = [f"{format_cpu(request.cpu_m)} cpu"] if request.cpu_m else []
    parts += [f"{format_memory(request.memory)} memory"] if request.memory else []
    parts += [f"{request.gpu} gpu"] if request.gpu else []
    each = " and ".join(parts) or "a place"
    return f"{shape.gang} x ({each})" if shape.gang > 1 else each


def _free_ranks(shape: Shape, places: Sequence[Place], free: Mapping[PlaceKey, Resources]) -> int:
    return sum(runs_that_fit(shape.request, free[place.key], shape.gang) for place in places if place.key in free)


def _shortest(request: Resources, offers: Sequence[Resources]) -> tuple[str, str] | None:
    """Name the first dimension in which no offer is large enough, with the largest offer."""
    most_cpu = max((offer.cpu_m for offer in offers), default=0)
    if request.cpu_m > most_cpu:
        return f"{format_cpu(request.cpu_m)} cpu", format_cpu(max(0, most_cpu))
    most_memory = max((offer.memory for offer in offers), default=0)
    if request.memory > most_memory:
        return f"{format_memory(request.memory)} memory", format_memory(max(0, most_memory))
    most_gpu = max((offer.gpu for offer in offers), default=0)
    if request.gpu > most_gpu:
        return f"{request.gpu} gpu", str(max(0, most_gpu))
    if not any(request.fits(offer) for offer in offers):
        return _amount(Shape(request)), "never all of that at once"
    return None


@dataclass(slots=True)
class Usage:
    """What a queue uses now."""

    resources: Resources = Resources(0)
    jobs: int = 0


class Capacity:
    """Capacity by place and usage by queue, derived from the runs that are charged.

    A run is charged from being placed until it is confirmed stopped. Charging and releasing are idempotent by run uid,
    so a repeated report cannot leak capacity.
    """

    def __init__(self) -> None:
        """Start with no places and nothing charged."""
        self.places: dict[PlaceKey, Place] = {}
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        """By queue, to be counted up and down."""
        self.total = Resources(0)
        """Capacity of all places together, but those that are unlimited."""
        self._whole: dict[str, PlaceKey] = {}
        """The one place of each executor whose engine chooses nodes: its runs move to the nodes it chose."""
        self.free: dict[PlaceKey, Resources] = {}
        """What is free now, by place."""
        self.charges: dict[str, tuple[PlaceKey, Resources, str]] = {}
        """Where each run is charged, what, and to which queue, by its uid."""

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
        for key, amount, _ in self.charges.values():
            if self._whole.get(key[0], key) == place.key:
                used += amount
        self.free[place.key] = place.capacity - used
        return True

    def drop_places(self, executor: str, *, but: Collection[str] = ()) -> None:
        """Forget the places of an executor that is lost, or those it no longer has; what runs there stays charged."""
        for key in [key for key in self.places if key[0] == executor and key[1] not in but]:
            self.total -= _counted(self.places.pop(key))
            self.free.pop(key, None)

    def charge(self, run: Run, queue: str) -> None:
        """Charge a run to its place."""
        if run.uid in self.charges:
            return
        key = (run.executor, run.node)
        self.charges[run.uid] = (key, run.request, queue)
        self.usage[queue].resources += run.request
        home = self._whole.get(key[0], key)
        if home in self.free:
            self.free[home] -= run.request

    def release(self, uid: str) -> bool:
        """Give a run's capacity back; returns whether it was charged."""
        charge = self.charges.pop(uid, None)
        if charge is None:
            return False
        key, amount, queue = charge
        home = self._whole.get(key[0], key)
        if home in self.free:
            self.free[home] += amount
        self.usage[queue].resources -= amount
        return True


def _counted(place: Place | None) -> Resources:
    return Resources(0) if place is None or place.capacity == UNLIMITED else place.capacity
