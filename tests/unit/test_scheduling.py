"""Who starts next and where, as tables and small worlds."""

from __future__ import annotations

import pytest

from holdfast.domain.containers import LOCAL, Capability, EngineInfo
from holdfast.domain.job import Ceiling, Queue, Resources
from holdfast.domain.placement.fit import Place, Shape, Usage, ever_fits, fit, why_not, without_hopeless_avoidance
from holdfast.domain.placement.scheduling import (
    GroupKey,
    PendingQueue,
    RetryBalance,
    Round,
    RoundLimits,
    RoundResult,
    Waiting,
)
from holdfast.domain.record import evolve

GIB = 1024**3


def _places(*cpus: int) -> list[Place]:
    return [
        Place(("local", f"n{i}"), Resources(cpu * 1000, 64 * GIB), {"zone": f"z{i}", "rack": f"r{i}"})
        for i, cpu in enumerate(cpus)
    ]


def _shape(cpu: float = 1, gang: int = 1, avoid: str | None = None, **selector: str) -> Shape:
    return Shape(Resources(int(cpu * 1000)), gang, tuple(sorted(selector.items())), avoid)


class World:
    """A waiting line and some nodes; ``go`` runs one round."""

    def __init__(self, *cpus: int, queues: tuple[Queue, ...] = ()) -> None:
        self.pending = PendingQueue()
        self.places = _places(*cpus)
        self.free = {place.key: place.capacity for place in self.places}
        self.queues = {queue.name: queue for queue in queues}
        self.usage: dict[str, Usage] = {}
        self.balances: dict[tuple[str, int], RetryBalance] = {}
        self.seq = 0

    def wait(self, job: str, shape: Shape, *, queue: str = "default", priority: int = 0, retry: bool = False) -> None:
        self.seq += 1
        self.pending.add(GroupKey(queue, shape, retry), Waiting(-priority, self.seq, job, 0.0))

    def go(self, now: float = 0.0, limits: RoundLimits | None = None, *, retry_share: float = 0.5) -> RoundResult:
        return Round(
            pending=self.pending,
            places=self.places,
            free=self.free,
            queues=self.queues,
            usage=self.usage,
            balances=self.balances,
            now=now,
            total=sum((place.capacity for place in self.places), Resources(0)),
            retry_share=retry_share,
            limits=limits or RoundLimits(),
        ).plan()

    def started(self, now: float = 0.0, *, retry_share: float = 0.5) -> list[str]:
        return [placement.job_id for placement in self.go(now, retry_share=retry_share).placements]


@pytest.mark.parametrize(
    ("shape", "cpus", "expected"),
    [
        (_shape(1), (2, 2), ["n0"]),
        (_shape(2), (1, 2), ["n1"]),
        (_shape(3), (2, 2), None),
        (_shape(1, gang=3), (2, 2), ["n0", "n0", "n1"]),
        (_shape(1, gang=5), (2, 2), None),
        (_shape(1, avoid="n0"), (2, 2), ["n1"]),
        (_shape(1, zone="z1"), (2, 2), ["n1"]),
        (_shape(1, zone="z9"), (2, 2), None),
        (_shape(0, gang=2), (0, 2), ["n0", "n0"]),
    ],
)
def test_a_shape_is_placed_first_fit_and_whole_or_not_at_all(
    shape: Shape, cpus: tuple[int, ...], expected: list[str] | None
) -> None:
    places = _places(*cpus)
    chosen = fit(shape, places, {place.key: place.capacity for place in places})
    assert (None if chosen is None else [node for _, node in chosen]) == expected


@pytest.mark.parametrize(
    ("shape", "free_cpu", "reason"),
    [
        (_shape(8), (6, 6), "needs 8 cpu, the largest free node has 6"),
        (_shape(32), (6, 6), "needs 32 cpu, the largest node has 16: no node could ever take it"),
        (_shape(1, zone="z7"), (6, 6), "no node has the label zone=z7"),
        (_shape(1, zone="z1", gpu="h100"), (6, 6), "no node has the label gpu=h100"),
        (_shape(1, zone="z7", gpu="h100"), (6, 6), "no node has the labels gpu=h100, zone=z7"),
        (_shape(1, rack="r0", zone="z1"), (6, 6), "no node has all of the labels rack=r0, zone=z1"),
        (_shape(4, gang=4), (6, 6), "needs 4 x (4 cpu), the free nodes hold 2 of 4"),
        (_shape(8, gang=9), (6, 6), "needs 9 x (8 cpu), all nodes together could never hold it"),
        (
            Shape(Resources(1000, 128 * GIB)),
            (6, 6),
            "needs 128Gi memory, the largest node has 64Gi: no node could ever take it",
        ),
    ],
)
def test_a_pending_reason_has_the_numbers_a_person_needs(shape: Shape, free_cpu: tuple[int, int], reason: str) -> None:
    places = _places(16, 16)
    free = {place.key: Resources(cpu * 1000, 64 * GIB) for place, cpu in zip(places, free_cpu, strict=True)}
    assert why_not(shape, places, free) == reason


def test_no_node_at_all_is_said_plainly() -> None:
    assert why_not(_shape(), [], {}) == "no executor has reported a node yet"


def test_what_only_some_engines_can_do_goes_to_their_nodes() -> None:
    capable = EngineInfo("wide", frozenset({Capability.INIT_CONTAINERS, Capability.IMAGES}))
    plain, wide = (evolve(place, engine=engine) for place, engine in zip(_places(8, 8), (LOCAL, capable), strict=True))
    needing = evolve(_shape(), needs=frozenset({Capability.INIT_CONTAINERS}))
    free = {place.key: place.capacity for place in (plain, wide)}
    assert fit(needing, [plain, wide], free) == [wide.key]
    assert why_not(needing, [plain], free) == "no node has an engine capable of init-containers"
    just = evolve(wide, engine=EngineInfo("just", needing.needs))
    elsewhere = evolve(needing, selector=(("zone", "z9"),))
    assert why_not(elsewhere, [just], free) == "no node has the label zone=z9"


def test_an_engine_that_places_runs_itself_looks_at_labels_itself() -> None:
    place = Place(("slurm", "all"), Resources(8000), engine=EngineInfo("slurm", frozenset({Capability.PLACEMENT})))
    assert fit(_shape(1, 1, "all", zone="z1"), [place], {place.key: place.capacity}) == [place.key]


def test_anti_affinity_is_dropped_only_when_no_other_node_could_ever_fit() -> None:
    lonely, pair = _places(4), _places(4, 4)
    assert without_hopeless_avoidance(_shape(1, avoid="n0"), lonely).avoid is None
    assert without_hopeless_avoidance(_shape(1, avoid="n0"), pair).avoid == "n0"
    assert not ever_fits(_shape(1, avoid="n0"), lonely)


def test_higher_priority_starts_first_then_order_of_submission() -> None:
    """SQ-001 and SQ-005."""
    world = World(3)
    world.wait("low", _shape())
    world.wait("first", _shape(), priority=5)
    world.wait("second", _shape(), priority=5)
    assert world.started() == ["first", "second", "low"]


@pytest.mark.parametrize(
    ("nodes", "free", "queue", "expected"),
    [
        pytest.param((4,), (4,), (2, 2, 2, 2), ["n0", "n0"], id="jobs are placed until the node is full"),
        pytest.param((4,), (1,), (2,), [], id="what runs already counts"),
        pytest.param((2, 2), (2, 2), (2, 2, 2), ["n0", "n1"], id="the next job goes to the next node"),
    ],
)
def test_a_round_places_no_more_than_its_nodes_have_room_for(
    nodes: tuple[int, ...], free: tuple[int, ...], queue: tuple[int, ...], expected: list[str]
) -> None:
    world = World(*nodes)
    for place, cpu in zip(world.places, free, strict=True):
        world.free[place.key] = Resources(cpu * 1000, 64 * GIB)
    for number, cpu in enumerate(queue):
        world.wait(f"j{number}", _shape(cpu))
    plan = world.go()
    assert [node for placement in plan.placements for _, node in placement.places] == expected


def test_a_job_that_does_not_fit_lets_smaller_ones_pass() -> None:
    world = World(2)
    world.wait("big", _shape(4))
    world.wait("small", _shape(1))
    plan = world.go()
    assert [placement.job_id for placement in plan.placements] == ["small"]
    assert [blocked.waiting.job_id for blocked in plan.blocked] == ["big"]


def test_a_starving_job_gets_its_node_kept_free() -> None:
    world = World(4)
    world.free[("local", "n0")] = Resources(2000, GIB)
    world.wait("big", _shape(4))
    world.wait("small", _shape(1))
    assert world.started(now=31.0) == []
    world.free[("local", "n0")] = Resources(4000, GIB)
    assert world.started(now=32.0) == ["big"]


def test_a_job_that_never_fits_keeps_nothing_free() -> None:
    world = World(4)
    world.wait("impossible", _shape(64))
    world.wait("small", _shape(1))
    assert world.started(now=1000.0) == ["small"]


def test_equal_shapes_are_tried_once_per_round() -> None:
    world = World(1)
    for number in range(50):
        world.wait(f"j{number}", _shape(2))
    assert len(world.go().blocked) == 1


def test_queues_share_capacity_by_weight() -> None:
    world = World(6, queues=(Queue("heavy", weight=2.0), Queue("light")))
    for number in range(6):
        world.wait(f"h{number}", _shape(), queue="heavy")
        world.wait(f"l{number}", _shape(), queue="light")
    started = world.started()
    assert sum(job.startswith("h") for job in started) == 4
    assert sum(job.startswith("l") for job in started) == 2


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(Resources(50_000), Resources(10_000), ["second", "first"], id="SQ-003"),
        pytest.param(Resources(10_000, gpu=5), Resources(40_000), ["second", "first"], id="SQ-004"),
        pytest.param(Resources(10_000, gpu=3), Resources(40_000), ["first", "second"], id="less-than-its-gpus"),
    ],
)
def test_the_queue_that_uses_least_of_what_it_uses_most_goes_first(
    first: Resources, second: Resources, expected: list[str]
) -> None:
    world = World(100, queues=(Queue("first"), Queue("second")))
    world.places = [evolve(world.places[0], capacity=evolve(world.places[0].capacity, gpu=10))]
    world.usage = {"first": Usage(first), "second": Usage(second)}
    for name in ("first", "second"):
        world.wait(name, _shape(), queue=name)
    assert world.started() == expected


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        (Queue("default", paused=True), "queue default is paused"),
        (Queue("default", max_running_jobs=1), "queue default is at its limit of 1 running jobs"),
        (Queue("default", max_running=Ceiling(cpu_m=1500)), "queue default is at its cpu limit"),
        (Queue("default", max_running=Ceiling(cpu_m=0)), "queue default is at its cpu limit"),
    ],
)
def test_a_queue_limit_blocks_and_says_so(queue: Queue, reason: str) -> None:
    """SQ-006."""
    world = World(8, queues=(queue,))
    world.wait("a", _shape())
    world.wait("b", _shape())
    assert world.go().blocked[-1].reason == reason


def test_a_queue_has_no_more_of_what_is_counted_by_a_name_than_its_limit() -> None:
    world = World(8, queues=(Queue("default", max_running=Ceiling(named=(("licence", 2500),))),))
    world.places = [
        evolve(place, capacity=evolve(place.capacity, named=(("licence", 9000),))) for place in world.places
    ]
    world.free = {place.key: place.capacity for place in world.places}
    for name in "abc":
        world.wait(name, Shape(Resources(100, named=(("licence", 1000),))))
    found = world.go()
    assert [one.job_id for one in found.placements] == ["a", "b"]
    assert found.blocked[-1].reason == "queue default is at its licence limit"


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.5, "r0 n0 r1 n1 r2 n2 r3 n3"),
        (0.25, "r0 n0 n1 n2 r1 n3 r2 r3"),
        (0.75, "r0 n0 r1 r2 r3 n1 n2 n3"),
        (0.0, "n0 n1 n2 n3 r0 r1 r2 r3"),
        (1.0, "r0 r1 r2 r3 n0 n1 n2 n3"),
    ],
)
def test_retries_go_ahead_of_new_jobs_but_take_at_most_their_share_while_new_ones_wait(
    share: float, expected: str
) -> None:
    world = World(1)
    for number in range(4):
        world.wait(f"r{number}", _shape(), retry=True)
    for number in range(4):
        world.wait(f"n{number}", _shape())
    order = []
    for _ in range(8):
        order += world.started(retry_share=share)
        world.free = {place.key: place.capacity for place in world.places}
    assert " ".join(order) == expected


def test_a_removed_job_is_not_started_and_a_moved_one_only_once() -> None:
    world = World(4)
    world.wait("gone", _shape())
    world.wait("moved", _shape())
    world.pending.remove("gone")
    world.wait("moved", _shape(2))
    assert world.started() == ["moved"]
    assert len(world.pending) == 0


def test_a_round_is_bounded() -> None:
    world = World(100)
    for number in range(50):
        world.wait(f"j{number}", _shape())
    assert len(world.go(limits=RoundLimits(most_placements=7)).placements) == 7
