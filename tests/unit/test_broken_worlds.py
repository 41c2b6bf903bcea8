"""What worlds once broke on, without a world: the fault at its smallest, in the product or in what checks it."""

# ruff: noqa: SLF001 - people of a world are asked to do one thing, which else they do by chance

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.controller import ControllerSettings
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.devices import Device
from holdfast.domain.event_mapping import Outbox
from holdfast.domain.job import ChildOf, Job, JobState, Resources
from holdfast.domain.notifier import Notify, Occasion
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes
from holdfast.service.operations.nodes import Nodes
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, group, manifest
from tools.memory_store import MemoryStore
from tools.simulate.invariants.ending import EndChecks
from tools.simulate.invariants.notifications import NotificationChecks
from tools.simulate.invariants.record import Record
from tools.simulate.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.engine import RunOrder

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)


class OneLookPerTick(SetLab):
    """A lab whose controller looks at one Kubernetes Job in each tick."""

    settings = ControllerSettings(kube_jobs_per_tick=1)


def waits_at_the_barrier(order: RunOrder) -> SimulatedRun:
    """Have the first pod of each job fail, and the other one take its time to stop."""
    return SimulatedRun(0.0, None, term_delay_s=500.0) if order.rank else exits(3, after_s=2.0)


def test_places_that_a_drain_takes_from_pods_are_not_charged_again_by_the_next_controller() -> None:
    lab = OneLookPerTick()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    rules = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    workers = group("w", 3, parallelism=2, completions=2, completionMode="Indexed", **rules)
    workers["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1000
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    lab.submit_set(manifest(replicatedJobs=[workers], failurePolicy=policy), waits_at_the_barrier)
    lab.pass_s(20)
    assert len([uid for uid in charged(lab) if uid.endswith("/kept")]) == 3
    Nodes(lab.store, lab.clock).cordon(BY, "n0", drain=True)
    while any(uid.endswith("/kept") for uid in charged(lab)):
        lab.clock.time += 1.0
        lab.tick()
    lab.restart_controller()
    left = [run.uid for number in range(3) for run in lab.store.runs(f"id-train-w-{number}") if run.rank]
    assert charged(lab) == {*left}


def charged(lab: SetLab) -> set[str]:
    return set(lab.controller.state.capacity.charges)


@pytest.mark.parametrize(
    "release",
    [
        lambda world, row: world._array_people._steer(RequestKind.RELEASE, row),
        lambda world, _: world._dependent_people._release_array(),
    ],
    ids=["by those who have arrays", "by those whose work waits"],
)
def test_people_of_a_world_release_the_tasks_of_an_array_with_it(release: Callable[[World, Array], None]) -> None:
    world = World(1, MemoryStore)
    spec = ArraySpec(JobSpec("sweep", ("true",)), (Indexes(0, 1),))
    row = Array(id="a", name="sweep", spec=dump_spec(spec), created_at=1.0, state=ArrayState(held="by me"))
    task = Job("a-sweep-0", "sweep-0", "default", 0, 1.0, "{}", child=ChildOf("a", "", 0))
    other = evolve(task, id="b-other-0", child=ChildOf("b", "", 0))
    world._arrays.accept(row, spec)
    world.record.jobs.update({job.id: job for job in (task, other)})
    release(world, row)
    assert world.record.released == {row.id, task.id}


def test_a_job_that_is_held_is_held_once_also_where_it_is_reprioritized_meanwhile() -> None:
    spec = JobSpec("work", ("true",), notify=(Notify("me", (Occasion.HOLD,)),))
    queued = Job("a", "work", "default", 0, 1.0, dump_spec(spec))
    held = evolve(queued, state=JobState.HELD, updated_at=2.0)
    record, outbox, told = Record(), Outbox(load_spec), 0
    checks = NotificationChecks(record)
    for before, after in pairwise([queued, held, evolve(held, priority=1), evolve(held, priority=1, reason="mine")]):
        changes = Changes()
        outbox.job_changed(changes.events, before, after, changes.notifications)
        record.jobs[after.id] = after
        checks.check(changes)
        told += len(changes.notifications)
    assert told == 1


def test_a_retry_may_wait_in_the_end_for_somebody_who_mends_a_device_but_for_no_node_that_was_tried() -> None:
    world = World(1, MemoryStore)
    well, ill, bare = (node for machine in world.machines for node in machine.all_nodes()[:1])
    gpu = Device("GPU-0", 0, "L4")
    for machine, node, devices in zip(
        world.machines, (well, ill, bare), ((gpu,), (evolve(gpu, health="fan is broken"),), ()), strict=True
    ):
        machine.report(evolve(node, capacity=evolve(node.capacity, gpu=len(devices)), devices=devices))
    ends = EndChecks(world.record, world.sets, world._arrays, world._dependencies, world.programs, world.machines)
    spec = JobSpec("work", ("true",), resources=Resources(100, 0, 1))
    job = Job("a", "work", "default", 0, 1.0, dump_spec(spec), spec.resources)
    kept_off = [(), (well.name,), (ill.name,), (well.name, ill.name)]
    assert [ends._may_wait(evolve(job, avoid_nodes=nodes)) for nodes in kept_off] == [False, True, False, False]
