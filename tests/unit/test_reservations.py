"""Whom nodes are kept free for, which, and how queues share them where some of it is not measured."""

from __future__ import annotations

from holdfast.controller.controller import ControllerSettings
from holdfast.domain.job import Resources
from holdfast.domain.placement.fit import Place
from holdfast.domain.placement.scheduling import RoundLimits
from tests.unit.conftest import Lab, exits, job_named
from tests.unit.test_scheduling import World, _shape


def test_the_roomiest_node_that_could_hold_a_starving_job_is_the_one_that_is_kept_free() -> None:
    world = World(4, 4)
    world.free[world.places[0].key] = Resources(1000)
    world.free[world.places[1].key] = Resources(3000)
    world.wait("large", _shape(4))
    for number in range(4):
        world.wait(f"small-{number}", _shape(1))
    assert world.started(now=60.0) == ["small-0"]


def test_queues_share_nodes_that_say_nothing_of_their_memory() -> None:
    world = World(2)
    world.places = [Place(("local", "n0"), Resources(2000))]
    world.free = {place.key: place.capacity for place in world.places}
    for queue in ("a", "b"):
        for number in range(2):
            world.wait(f"{queue}-{number}", _shape(1), queue=queue)
    assert world.started() == ["a-0", "b-0"]


def test_a_round_places_no_more_than_its_controller_is_set_to() -> None:
    class Slow(Lab):
        settings = ControllerSettings(round_limits=RoundLimits(most_placements=1))

    lab = Slow()
    for number in range(3):
        lab.submit(job_named(f"j{number}"), exits(0, after_s=1000.0))
    lab.step()
    assert len(lab.controller.state.active) == 1
